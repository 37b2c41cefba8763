-- What the ledger took from the product for an activity, and the guard on it.
--
-- reserved is NULL until "schema apply" or the first movement has taken it over
-- from the ledger: such a row is not judged.  A limit that 0.1.0's tool has
-- raised is in stock_limit at once and in reserved a moment later, when daemon or
-- tool of this version see it: until then the greater of the two counts.

ALTER TABLE seckill_activities
    ADD COLUMN reserved  INT UNSIGNED  NULL
        COMMENT 'units that preheats and restocks took from products.stock'
        AFTER returned;

ALTER TABLE seckill_activities
    ADD CONSTRAINT ck_units CHECK (sold + returned <= GREATEST(reserved, stock_limit));
