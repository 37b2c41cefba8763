-- The ledger: every movement of units that is not a sale, by whom and why.
--
-- Append only.  units is seen from products.stock: a preheat of 100 units is
-- -100, what settle gives back is positive.

CREATE TABLE IF NOT EXISTS seckill_stock_log (
    id           BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT,
    activity_id  BIGINT UNSIGNED  NOT NULL,
    product_id   BIGINT UNSIGNED  NOT NULL,
    epoch        BIGINT UNSIGNED  NOT NULL,
    kind         VARCHAR(16)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL
                 COMMENT 'preheat, restock, release, settle ...',
    ref          VARCHAR(64)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL
                 COMMENT 'tells movements of one kind apart',
    units        INT              NOT NULL COMMENT 'change of products.stock',
    actor        VARCHAR(64)      NOT NULL,
    note         VARCHAR(255)     NOT NULL DEFAULT '',
    created_at   TIMESTAMP        NULL DEFAULT CURRENT_TIMESTAMP,

    PRIMARY KEY (id),
    UNIQUE KEY uk_movement (activity_id, epoch, kind, ref)   -- each movement happens once
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
