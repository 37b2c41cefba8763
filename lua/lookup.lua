-- Ask the daemon what became of a buyer whose result key is not there.
--
-- KEYS[1] lookup, set   KEYS[2] order_users, set   KEYS[3] result, string
-- ARGV[1] user   ARGV[2] most users that may wait
--
-- Returns 1 when the user waits in the set now, 0 when there is nothing to ask
-- (a result has come, or the user is no buyer) or no room.

local lookup, buyers, result = KEYS[1], KEYS[2], KEYS[3]
local user, room = ARGV[1], tonumber(ARGV[2])

if redis.call("EXISTS", result) == 1 or redis.call("SISMEMBER", buyers, user) == 0 then
  return 0
end

if redis.call("SCARD", lookup) >= room then
  return redis.call("SISMEMBER", lookup, user)
end

redis.call("SADD", lookup, user)
return 1
