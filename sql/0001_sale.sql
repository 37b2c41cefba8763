-- The four tables of a sale: what is sold, when, to whom, and how it went.
--
-- Plain SQL that MySQL 8 and MariaDB share.  Instants in DATETIME are UTC, set
-- by the shop; TIMESTAMP columns hold an instant whatever zone a session has.
-- Released files are never edited: a change is a new file.

CREATE TABLE IF NOT EXISTS products (
    id          BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
    name        VARCHAR(120)    NOT NULL,
    stock       INT UNSIGNED    NOT NULL DEFAULT 0
                COMMENT 'units not reserved by any activity',
    price       DECIMAL(10,2)   NOT NULL,
    created_at  TIMESTAMP       NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at  TIMESTAMP       NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,

    PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;


CREATE TABLE IF NOT EXISTS seckill_activities (
    id               BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT,
    product_id       BIGINT UNSIGNED  NOT NULL,
    seckill_price    DECIMAL(10,2)    NOT NULL,
    stock_limit      INT UNSIGNED     NOT NULL COMMENT 'units that may be sold',
    start_time       DATETIME         NOT NULL COMMENT 'UTC',
    end_time         DATETIME         NOT NULL COMMENT 'UTC, the first instant after the sale',
    status           TINYINT          NOT NULL DEFAULT 0
                     COMMENT '0 not started, 1 running, 2 ended',
    -- the guard behind Redis: sold + quantity <= stock_limit, under this row's lock
    sold             INT UNSIGNED     NOT NULL DEFAULT 0 COMMENT 'units in orders',
    max_quantity     INT UNSIGNED     NOT NULL DEFAULT 1 COMMENT 'units per purchase',
    by_registration  TINYINT          NOT NULL DEFAULT 0 COMMENT '1: registered users only',
    epoch            BIGINT UNSIGNED  NOT NULL DEFAULT 0
                     COMMENT 'generation of the live state, 0 before the first preheat',
    created_at       TIMESTAMP        NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at       TIMESTAMP        NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,

    PRIMARY KEY (id),
    KEY idx_product_id (product_id),        -- the activities of one product
    KEY idx_start_time (start_time),        -- what begins soon
    KEY idx_status (status)                 -- what is running
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;


CREATE TABLE IF NOT EXISTS seckill_orders (
    id             BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT,
    order_no       VARCHAR(32)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    user_id        BIGINT UNSIGNED  NOT NULL,
    product_id     BIGINT UNSIGNED  NOT NULL,
    activity_id    BIGINT UNSIGNED  NOT NULL,
    seckill_price  DECIMAL(10,2)    NOT NULL,
    status         TINYINT          NOT NULL DEFAULT 1
                   COMMENT '1 created, 2 paid, 3 cancelled',
    quantity       INT UNSIGNED     NOT NULL DEFAULT 1,
    ext            VARCHAR(256)     NOT NULL DEFAULT '' COMMENT 'as the buyer sent it',
    request_id     VARCHAR(64)      CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
    epoch          BIGINT UNSIGNED  NOT NULL,
    seq            BIGINT UNSIGNED  NOT NULL COMMENT 'the purchase is (activity_id, epoch, seq)',
    created_at     TIMESTAMP        NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at     TIMESTAMP        NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,

    PRIMARY KEY (id),
    UNIQUE KEY uk_order_no (order_no),                     -- a number names one order
    UNIQUE KEY uk_user_activity (user_id, activity_id),    -- P1: one order per user, for ever
    UNIQUE KEY uk_purchase (activity_id, epoch, seq),      -- P2: a purchase becomes one order
    KEY idx_activity_id (activity_id)                      -- the orders of one activity
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;


CREATE TABLE IF NOT EXISTS seckill_records (
    id           BIGINT UNSIGNED  NOT NULL AUTO_INCREMENT,
    user_id      BIGINT UNSIGNED  NOT NULL,
    activity_id  BIGINT UNSIGNED  NOT NULL,
    status       TINYINT          NOT NULL DEFAULT 0
                 COMMENT '0 queueing, 1 success, 2 failed',
    created_at   TIMESTAMP        NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at   TIMESTAMP        NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,

    PRIMARY KEY (id),
    UNIQUE KEY uk_user_activity (user_id, activity_id),    -- P7: one state per buyer
    KEY idx_activity_id (activity_id)                      -- the buyers of one activity
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
