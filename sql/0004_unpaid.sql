-- Finding unpaid orders without reading the paid ones.

ALTER TABLE seckill_orders
    ADD KEY idx_unpaid (status, created_at);
