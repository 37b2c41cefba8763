-- What settling, releasing and restoring a sale need to remember.

ALTER TABLE seckill_activities
    ADD COLUMN seq_seen  BIGINT UNSIGNED  NOT NULL DEFAULT 0
        COMMENT 'largest seq of this epoch ever seen: a smaller one in Redis means loss'
        AFTER epoch,
    -- part of the guard behind Redis: sold + returned + quantity <= stock_limit
    ADD COLUMN returned  INT UNSIGNED     NOT NULL DEFAULT 0
        COMMENT 'units that no order took and products.stock has again'
        AFTER sold;


-- kinds release, surplus and cancel are about units of a purchase; where they
-- went decides who counts them.  All other kinds change products.stock.
ALTER TABLE seckill_stock_log
    ADD COLUMN target    VARCHAR(8)       CHARACTER SET ascii COLLATE ascii_bin
        NOT NULL DEFAULT ''
        COMMENT 'product: back in products.stock, redis: back on sale, else neither'
        AFTER units;
