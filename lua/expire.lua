-- Give the keys of a settled sale their expiry.
--
-- KEYS[1] activity, hash   KEYS[2..] other keys of the sale, of any type
-- ARGV[1] expire_ms, when they go
--
-- Returns how many of KEYS[2..] are there; KEYS[1] gets the expiry too, last.
-- Called again it changes nothing.
--
-- Errors: "SECKILL ..." for bad arguments and a sale that is not settled, and
-- Redis' own.

local call = redis.call
local facts, expire_ms = KEYS[1], ARGV[1]

if #KEYS < 1 or #ARGV ~= 1 or not string.find(expire_ms, "^[1-9]%d*$") or #expire_ms > 15 then
  return redis.error_reply("SECKILL expire takes keys and a time")
end

if call("HGET", facts, "state") ~= "settled" then
  return redis.error_reply("SECKILL the sale is not settled")
end

local there = 0
for i = 2, #KEYS do
  there = there + call("PEXPIREAT", KEYS[i], expire_ms)
end
call("PEXPIREAT", facts, expire_ms)

return there
