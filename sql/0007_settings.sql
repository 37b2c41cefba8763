-- What the shop must still have after Redis has lost everything: the key of the
-- queue tokens, which also signs the journals of the nodes.
--
-- The user of the shop itself must not read this table: whoever can read the key
-- can sign a purchase.

CREATE TABLE IF NOT EXISTS seckill_settings (
    prefix      VARCHAR(64)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL
                COMMENT 'of the keys in Redis',
    name        VARCHAR(64)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL
                COMMENT 'token_key: the one in force; token_key:ID: every one that was',
    value       VARCHAR(1024)  NOT NULL,
    created_at  TIMESTAMP      NULL DEFAULT CURRENT_TIMESTAMP,

    PRIMARY KEY (prefix, name)                             -- one value, whoever wrote first
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
