/*
 * Every column that daemon and tool use, as sql/ makes it, declared once; t/ctl/schema.t
 * holds it against the files.  A new column of sql/ is a new row here.
 *
 * A wider type than this is fine, a narrower one is named.  What matters beside
 * the type: REQUIRED can't be NULL, KEEPS_NULL must be able to be, NUMBERED counts
 * by itself, STAMPED is set by the server.
 */

/*         table               column           type                    also     */
SKB_COLUMN(products,           id,              SKB_UNSIGNED("bigint"), REQUIRED)
SKB_COLUMN(products,           name,            SKB_TEXT(1),            ANY)
SKB_COLUMN(products,           stock,           SKB_UNSIGNED("int"),    REQUIRED)
SKB_COLUMN(products,           price,           SKB_DECIMAL(10, 2),     ANY)
SKB_COLUMN(products,           created_at,      SKB_TIME,               ANY)
SKB_COLUMN(products,           updated_at,      SKB_TIME,               ANY)

SKB_COLUMN(seckill_activities, id,              SKB_UNSIGNED("bigint"), REQUIRED)
SKB_COLUMN(seckill_activities, product_id,      SKB_UNSIGNED("bigint"), REQUIRED)
SKB_COLUMN(seckill_activities, seckill_price,   SKB_DECIMAL(10, 2),     REQUIRED)
SKB_COLUMN(seckill_activities, stock_limit,     SKB_UNSIGNED("int"),    REQUIRED)
SKB_COLUMN(seckill_activities, start_time,      SKB_TIME,               REQUIRED)
SKB_COLUMN(seckill_activities, end_time,        SKB_TIME,               REQUIRED)
SKB_COLUMN(seckill_activities, status,          SKB_SIGNED("tinyint"),  REQUIRED)
SKB_COLUMN(seckill_activities, sold,            SKB_UNSIGNED("int"),    REQUIRED)
SKB_COLUMN(seckill_activities, max_quantity,    SKB_UNSIGNED("int"),    REQUIRED)
SKB_COLUMN(seckill_activities, by_registration, SKB_SIGNED("tinyint"),  REQUIRED)
SKB_COLUMN(seckill_activities, epoch,           SKB_UNSIGNED("bigint"), REQUIRED)
SKB_COLUMN(seckill_activities, seq_seen,        SKB_UNSIGNED("bigint"), REQUIRED)
SKB_COLUMN(seckill_activities, returned,        SKB_UNSIGNED("int"),    REQUIRED)
SKB_COLUMN(seckill_activities, reserved,        SKB_UNSIGNED("int"),    KEEPS_NULL)
SKB_COLUMN(seckill_activities, created_at,      SKB_TIME,               ANY)
SKB_COLUMN(seckill_activities, updated_at,      SKB_TIME,               ANY)

SKB_COLUMN(seckill_orders,     id,              SKB_UNSIGNED("bigint"), NUMBERED)
SKB_COLUMN(seckill_orders,     order_no,        SKB_BYTES(32),          REQUIRED)
SKB_COLUMN(seckill_orders,     user_id,         SKB_UNSIGNED("bigint"), REQUIRED)
SKB_COLUMN(seckill_orders,     product_id,      SKB_UNSIGNED("bigint"), ANY)
SKB_COLUMN(seckill_orders,     activity_id,     SKB_UNSIGNED("bigint"), REQUIRED)
SKB_COLUMN(seckill_orders,     seckill_price,   SKB_DECIMAL(10, 2),     ANY)
SKB_COLUMN(seckill_orders,     status,          SKB_SIGNED("tinyint"),  REQUIRED)
SKB_COLUMN(seckill_orders,     quantity,        SKB_UNSIGNED("int"),    REQUIRED)
SKB_COLUMN(seckill_orders,     ext,             SKB_TEXT(256),          ANY)
SKB_COLUMN(seckill_orders,     request_id,      SKB_TEXT(64),           ANY)
SKB_COLUMN(seckill_orders,     epoch,           SKB_UNSIGNED("bigint"), REQUIRED)
SKB_COLUMN(seckill_orders,     seq,             SKB_UNSIGNED("bigint"), REQUIRED)
SKB_COLUMN(seckill_orders,     created_at,      SKB_TIME,               STAMPED)
SKB_COLUMN(seckill_orders,     updated_at,      SKB_TIME,               ANY)

SKB_COLUMN(seckill_records,    id,              SKB_UNSIGNED("bigint"), NUMBERED)
SKB_COLUMN(seckill_records,    user_id,         SKB_UNSIGNED("bigint"), REQUIRED)
SKB_COLUMN(seckill_records,    activity_id,     SKB_UNSIGNED("bigint"), REQUIRED)
SKB_COLUMN(seckill_records,    status,          SKB_SIGNED("tinyint"),  REQUIRED)
SKB_COLUMN(seckill_records,    created_at,      SKB_TIME,               ANY)
SKB_COLUMN(seckill_records,    updated_at,      SKB_TIME,               ANY)

SKB_COLUMN(seckill_stock_log,  id,              SKB_UNSIGNED("bigint"), NUMBERED)
SKB_COLUMN(seckill_stock_log,  activity_id,     SKB_UNSIGNED("bigint"), REQUIRED)
SKB_COLUMN(seckill_stock_log,  product_id,      SKB_UNSIGNED("bigint"), REQUIRED)
SKB_COLUMN(seckill_stock_log,  epoch,           SKB_UNSIGNED("bigint"), REQUIRED)
SKB_COLUMN(seckill_stock_log,  kind,            SKB_BYTES(16),          REQUIRED)
SKB_COLUMN(seckill_stock_log,  ref,             SKB_BYTES(64),          REQUIRED)
SKB_COLUMN(seckill_stock_log,  units,           SKB_SIGNED("int"),      REQUIRED)
SKB_COLUMN(seckill_stock_log,  target,          SKB_BYTES(8),           REQUIRED)
SKB_COLUMN(seckill_stock_log,  actor,           SKB_TEXT(64),           ANY)
SKB_COLUMN(seckill_stock_log,  note,            SKB_TEXT(255),          ANY)
SKB_COLUMN(seckill_stock_log,  created_at,      SKB_TIME,               ANY)

SKB_COLUMN(seckill_stock_base, product_id,      SKB_UNSIGNED("bigint"), REQUIRED)
SKB_COLUMN(seckill_stock_base, base,            SKB_SIGNED("bigint"),   REQUIRED)
SKB_COLUMN(seckill_stock_base, updated_at,      SKB_TIME,               ANY)

SKB_COLUMN(seckill_terms,      activity_id,     SKB_UNSIGNED("bigint"), REQUIRED)
SKB_COLUMN(seckill_terms,      epoch,           SKB_UNSIGNED("bigint"), REQUIRED)
SKB_COLUMN(seckill_terms,      product_id,      SKB_UNSIGNED("bigint"), REQUIRED)
SKB_COLUMN(seckill_terms,      price,           SKB_DECIMAL(10, 2),     REQUIRED)
SKB_COLUMN(seckill_terms,      max_quantity,    SKB_UNSIGNED("int"),    REQUIRED)
SKB_COLUMN(seckill_terms,      by_registration, SKB_SIGNED("tinyint"),  REQUIRED)
SKB_COLUMN(seckill_terms,      start_time,      SKB_TIME,               REQUIRED)
SKB_COLUMN(seckill_terms,      end_time,        SKB_TIME,               REQUIRED)
SKB_COLUMN(seckill_terms,      kind,            SKB_BYTES(16),          REQUIRED)
SKB_COLUMN(seckill_terms,      created_at,      SKB_TIME,               ANY)

SKB_COLUMN(seckill_settings,   prefix,          SKB_BYTES(64),          REQUIRED)
SKB_COLUMN(seckill_settings,   name,            SKB_BYTES(64),          REQUIRED)
SKB_COLUMN(seckill_settings,   value,           SKB_TEXT(1024),         REQUIRED)
SKB_COLUMN(seckill_settings,   created_at,      SKB_TIME,               ANY)

/*      table               name               columns, by name                     */
SKB_KEY(products,           "PRIMARY",         "id")
SKB_KEY(seckill_activities, "PRIMARY",         "id")
SKB_KEY(seckill_orders,     "uk_order_no",     "order_no")
SKB_KEY(seckill_orders,     "uk_user_activity", "activity_id,user_id")
SKB_KEY(seckill_orders,     "uk_purchase",     "activity_id,epoch,seq")
SKB_KEY(seckill_records,    "uk_user_activity", "activity_id,user_id")
SKB_KEY(seckill_stock_log,  "uk_movement",     "activity_id,epoch,kind,ref")
SKB_KEY(seckill_stock_base, "PRIMARY",         "product_id")
SKB_KEY(seckill_terms,      "PRIMARY",         "activity_id,epoch")
SKB_KEY(seckill_settings,   "PRIMARY",         "name,prefix")

/*        table               name */
SKB_CHECK(seckill_activities, "ck_units")
