-- Give the keys of a settled sale their expiry: the facts go last, as they tell for
-- longer that it is over.
--
-- KEYS[1] activity, hash   KEYS[2..] other keys of the sale, of any type
-- ARGV[1] expire_ms, when KEYS[2..] go   ARGV[2] when the facts go, not before them
--
-- Returns how many of KEYS[2..] are there; KEYS[1] gets its expiry last.
-- Called again it changes nothing.
--
-- Errors: "SECKILL ..." for bad arguments and a sale that is not settled, and
-- Redis' own.

local call = redis.call
local facts, expire_ms, facts_ms = KEYS[1], ARGV[1], ARGV[2]

local function is_time(text)
  return text and string.find(text, "^[1-9]%d*$") and #text <= 15
end

if #KEYS < 1 or #ARGV ~= 2 or not (is_time(expire_ms) and is_time(facts_ms))
   or tonumber(facts_ms) < tonumber(expire_ms) then
  return redis.error_reply("SECKILL expire takes keys and two times")
end

if call("HGET", facts, "state") ~= "settled" then
  return redis.error_reply("SECKILL the sale is not settled")
end

local there = 0
for i = 2, #KEYS do
  there = there + call("PEXPIREAT", KEYS[i], expire_ms)
end
call("PEXPIREAT", facts, facts_ms)

return there
