-- Let pending entries be taken over whose time of delivery is in the future: they
-- were delivered while Redis' clock was ahead, so to XAUTOCLAIM they are never idle.
-- Who knows by another clock that they have not moved says for how long.
--
-- KEYS[1] orders, stream
-- ARGV[1] group   ARGV[2] idle in milliseconds, what they get
-- ARGV[3] how many entries follow, three arguments each:
--         id, its consumer, how often it was delivered, as it was seen before
--
-- Returns { how many are idle now, { ids that are gone from the stream } }.  Passed
-- over are entries that have moved since they were seen: another consumer, another
-- count, or no time in the future.  Those that are gone stay as they are, pending.
--
-- Errors: "SECKILL ..." for bad arguments, and Redis' own, NOGROUP among them.

local call = redis.call
local orders, group, idle, n = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])

if #KEYS ~= 1 or not n or #ARGV ~= 3 + 3 * n then
  return redis.error_reply("SECKILL thaw takes a stream, a group, a time and entries")
end

local thawed, gone = 0, {}

for i = 4, #ARGV, 3 do
  local id, consumer, deliveries = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local seen = call("XPENDING", orders, group, id, id, 1)[1]

  if seen and seen[2] == consumer and seen[3] == 0
     and string.format("%d", seen[4]) == deliveries then
    if #call("XRANGE", orders, id, id) == 0 then
      gone[#gone + 1] = id
    else
      call("XCLAIM", orders, group, consumer, 0, id, "IDLE", idle, "JUSTID")
      thawed = thawed + 1
    end
  end
end

return { thawed, gone }
