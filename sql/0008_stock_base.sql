-- What products.stock was beside the ledger when a sale last took units from it.
--
-- stock = base + what the ledger moved, as long as nobody else changes the stock.
-- "reconcile" tells a difference.  Each preheat and restock takes a new base.

CREATE TABLE IF NOT EXISTS seckill_stock_base (
    product_id  BIGINT UNSIGNED  NOT NULL,
    base        BIGINT           NOT NULL COMMENT 'products.stock less the units of the ledger',
    updated_at  TIMESTAMP        NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,

    PRIMARY KEY (product_id)                               -- one stock per product
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;


ALTER TABLE seckill_stock_log
    ADD KEY idx_product_id (product_id);                   -- the movements of one product
