-- The terms of each epoch: what buyers were promised when the sale was put up.
--
-- A row is never changed once it is there: other terms are another epoch.  Orders
-- are written by the terms of their purchase's epoch, whatever became of the row in
-- seckill_activities since.

CREATE TABLE IF NOT EXISTS seckill_terms (
    activity_id      BIGINT UNSIGNED  NOT NULL,
    epoch            BIGINT UNSIGNED  NOT NULL,
    product_id       BIGINT UNSIGNED  NOT NULL,
    price            DECIMAL(10,2)    NOT NULL,
    max_quantity     INT UNSIGNED     NOT NULL COMMENT 'units per purchase',
    by_registration  TINYINT          NOT NULL DEFAULT 0 COMMENT '1: registered users only',
    start_time       DATETIME         NOT NULL COMMENT 'UTC',
    end_time         DATETIME         NOT NULL COMMENT 'UTC, the first instant after the sale',
    kind             VARCHAR(16)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL
                     COMMENT 'what made the row: preheat, restore, migration',
    created_at       TIMESTAMP        NULL DEFAULT CURRENT_TIMESTAMP,

    PRIMARY KEY (activity_id, epoch)                       -- one promise per epoch
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;


-- Every epoch so far, by the row as it is today: version 0.1.0 kept nothing else.
-- "seckillctl schema apply" does this again whenever it runs.
INSERT INTO seckill_terms (activity_id, epoch, product_id, price, max_quantity,
        by_registration, start_time, end_time, kind)
    SELECT a.id, e.epoch, a.product_id, a.seckill_price, a.max_quantity,
           a.by_registration <> 0, a.start_time, a.end_time, 'migration'
    FROM seckill_activities AS a
    JOIN (SELECT id AS activity_id, epoch FROM seckill_activities
          UNION SELECT DISTINCT activity_id, epoch FROM seckill_orders
          UNION SELECT DISTINCT activity_id, epoch FROM seckill_stock_log) AS e
        ON e.activity_id = a.id
    LEFT JOIN seckill_terms AS t ON t.activity_id = a.id AND t.epoch = e.epoch
    WHERE e.epoch > 0 AND t.epoch IS NULL
    ON DUPLICATE KEY UPDATE kind = seckill_terms.kind;
