-- Put MySQL's copy of the queue token's key back into Redis.
--
-- KEYS[1] control, hash   ARGV seen, wanted: 64 hex digits; seen "": there was none
--
-- Returns "1" when it is set, "0" when control is not there or holds another key
-- than the one that was seen: whoever made it meanwhile asked MySQL as well.

local control, seen, wanted = KEYS[1], ARGV[1], ARGV[2]

if #KEYS ~= 1 or #ARGV ~= 2 or #wanted ~= 64 or not string.find(wanted, "^[0-9a-f]+$") then
  return redis.error_reply("SECKILL token_key takes one key, the key that was seen and the one to set")
end

if redis.call("EXISTS", control) == 0 or (redis.call("HGET", control, "token_key") or "") ~= seen then
  return "0"
end

redis.call("HSET", control, "token_key", wanted)
redis.call("HINCRBY", control, "rev", 1)

return "1"
