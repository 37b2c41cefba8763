-- Admit a batch of purchases of one activity: the only place that sells.
--
-- KEYS[1] activity, hash   KEYS[2] stock, string   KEYS[3] order_users, set
-- KEYS[4] orders, stream   KEYS[5] eligible, set
-- ARGV[1] activity id, then for each purchase: user, quantity, request_id, ext
--
-- Returns { time_ms, epoch, rev, seq, stock left, verdicts }: verdicts is a
-- string of one digit per purchase, as in src/shared/sk_verdicts_x.h; seq is
-- the last one given, so the k-th of n accepted has seq - n + k.
--
-- Errors: "SECKILL ..." when the sale's state is missing or damaged.  Scripts
-- do not roll back, so every type and every argument is proved before the
-- first write; after an error of this script nothing was taken.

local ACCEPTED, REPEAT, SOLD_OUT = "1", "2", "3"
local NOT_STARTED, ENDED, NOT_ELIGIBLE = "4", "5", "6"
local CLOSED, BAD_REQUEST = "7", "9"

local call = redis.call
local facts, stock, buyers, orders, eligible = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local activity = ARGV[1]

-- what is sold, when, and the generation of it all

local fact = call("HMGET", facts, "state", "start_ms", "end_ms", "max_quantity",
                  "epoch", "rev", "seq", "eligible")
local state = fact[1]
local start_ms, end_ms, max_quantity = tonumber(fact[2]), tonumber(fact[3]), tonumber(fact[4])
local epoch, rev, seq = tonumber(fact[5]), tonumber(fact[6]), tonumber(fact[7])

if not (state and start_ms and end_ms and max_quantity and epoch and rev and seq) then
  return redis.error_reply("SECKILL facts of the activity are missing")
end

local left = call("GET", stock)
if not left or not string.find(left, "^%d+$") then
  return redis.error_reply("SECKILL stock is missing or not a number")
end
left = tonumber(left)

-- a wrong type is an error here, before anything is written
call("SCARD", buyers)
call("XLEN", orders)
local by_registration = fact[8] == "1"
if by_registration then
  call("SCARD", eligible)
end

if #ARGV < 5 or #ARGV % 4 ~= 1 then
  return redis.error_reply("SECKILL purchases need four arguments each")
end
for i = 3, #ARGV, 4 do
  if not string.find(ARGV[i], "^[1-9]%d*$") then
    return redis.error_reply("SECKILL quantity is not a number")
  end
end

local time = call("TIME")
local seconds, millis = tonumber(time[1]), math.floor(tonumber(time[2]) / 1000)
local now_ms = seconds * 1000 + millis

-- the entry as a whole: whoever did not buy before hears this

local gate
if state == "settled" then
  gate = ENDED
elseif state ~= "open" then
  gate = CLOSED
elseif now_ms < start_ms then
  gate = NOT_STARTED
elseif now_ms >= end_ms then
  gate = ENDED
end

-- yymmddHHMMSSmmm in UTC and activity mod 10^6: the part of the order_no that
-- all purchases of the batch share

local function order_no_head()
  local days = math.floor(seconds / 86400)
  local second = seconds % 86400
  -- civil date of a day count, years beginning in March
  local z = days + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524)
                          - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local day = doy - math.floor((153 * mp + 2) / 5) + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return string.format("%02d%02d%02d%02d%02d%02d%03d%06d", year % 100, month, day,
                       math.floor(second / 3600), math.floor(second / 60) % 60, second % 60,
                       millis, tonumber(string.sub(activity, -6)))
end

local verdicts, count, taken = {}, 0, 0
local head

for i = 2, #ARGV, 4 do
  local user, quantity = ARGV[i], tonumber(ARGV[i + 1])
  local verdict = gate

  if not verdict then
    if by_registration and call("SISMEMBER", eligible, user) == 0 then
      verdict = NOT_ELIGIBLE
    elseif quantity > max_quantity then
      verdict = BAD_REQUEST
    elseif quantity > left then
      verdict = SOLD_OUT
    end
  end

  if verdict then
    if call("SISMEMBER", buyers, user) == 1 then
      verdict = REPEAT
    end

  elseif call("SADD", buyers, user) == 0 then
    verdict = REPEAT

  else
    verdict = ACCEPTED
    head = head or order_no_head()
    left = left - quantity
    taken = taken + quantity
    seq = seq + 1
    call("XADD", orders, "*", "v", "1", "user", user, "activity", activity,
         "quantity", ARGV[i + 1], "epoch", epoch, "seq", seq,
         "order_no", string.format("%s%07d%04d", head, seq % 10000000,
                                   tonumber(string.sub(user, -4))),
         "accepted_ms", string.format("%.0f", now_ms), "request_id", ARGV[i + 2],
         "ext", ARGV[i + 3])
  end

  count = count + 1
  verdicts[count] = verdict
end

if taken > 0 then
  call("DECRBY", stock, taken)
  call("HSET", facts, "seq", seq)
end

return { now_ms, epoch, rev, seq, left, table.concat(verdicts) }
