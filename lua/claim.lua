-- Take over what a consumer was given and has not handled, as XAUTOCLAIM does.
-- Entries that were deleted from the stream meanwhile are forgotten with that
-- (Redis 7): each leaves a dead letter in the same step.
--
-- KEYS[1] orders, stream   KEYS[2] dead, stream
-- ARGV group, consumer, idle in milliseconds, cursor, count, error of the letters
--
-- Returns { next cursor, how many are taken over, { ids of the letters } }; or
-- Redis' own error, NOGROUP among them.

local call = redis.call
local orders, dead, group, consumer, idle, cursor, count, why =
  KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

call("XLEN", dead)

local time = call("TIME")
local now_ms = string.format("%d", tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
local reply = redis.pcall("XAUTOCLAIM", orders, group, consumer, idle, cursor, "COUNT", count,
                          "JUSTID")

if reply.err then
  return reply
end

local deleted = reply[3] or {}

for _, id in ipairs(deleted) do
  call("XADD", dead, "*", "entry", id, "reason", "deleted", "attempts", "1", "first_error", why,
       "last_error", why, "first_ms", now_ms, "dead_ms", now_ms)
end

return { reply[1], #reply[2], deleted }
