-- Put buyers back into order_users whom MySQL or the stream proves to be buyers.
--
-- KEYS[1] activity, hash   KEYS[2] order_users, set
-- ARGV users
--
-- Returns how many were not there.  One who was never counted in seq raises
-- buyers_extra; one whom Redis forgot was counted, and takes the empty place.
--
-- Errors: "SECKILL ..." for bad arguments and a sale that is not there; and Redis'
-- own.  All is proved before the first write.

local call, find = redis.call, string.find
local facts, buyers = KEYS[1], KEYS[2]

local function refuse(what)
  return redis.error_reply("SECKILL " .. what)
end

if #KEYS ~= 2 or #ARGV < 1 then
  return refuse("mend takes two keys and users")
end
for i = 1, #ARGV do
  if not (find(ARGV[i], "^[1-9]%d*$")
          and (#ARGV[i] < 20 or (#ARGV[i] == 20 and ARGV[i] <= "18446744073709551615"))) then
    return refuse("user is not an id")
  end
end

local seq, extra = unpack(call("HMGET", facts, "seq", "buyers_extra"))
if not (seq and #seq <= 15 and find(seq, "^%d+$")) then
  return refuse("facts of the activity are missing or damaged")
end
extra = extra and #extra <= 15 and find(extra, "^%-?%d+$") and tonumber(extra)
call("SCARD", buyers)

local added = 0
for i = 1, #ARGV do
  added = added + call("SADD", buyers, ARGV[i])
end

local now_extra = call("SCARD", buyers) - tonumber(seq)
if extra and now_extra > extra then
  call("HSET", facts, "buyers_extra", string.format("%d", now_extra))
end

return added
