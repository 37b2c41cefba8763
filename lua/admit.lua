-- Admit a batch of purchases of one activity: the only place that sells.
--
-- KEYS[1] activity, hash   KEYS[2] stock, string   KEYS[3] order_users, set
-- KEYS[4] orders, stream   KEYS[5] eligible, set
-- KEYS[6..] limit, string: one per purchase, where all nodes share the limit
-- ARGV[1] activity id, then for each purchase: user, quantity, request_id, ext;
-- then, where the caller remembers one, the last epoch and seq that Redis told
-- it; and, with limit keys, at the end: milliseconds per request, burst
--
-- Facts that are behind what the caller remembers: Redis lost purchases.  The
-- sale is paused before anybody can be given their numbers again.
--
-- Returns { time_ms, epoch, rev, seq, stock left, verdicts }: verdicts is a
-- string of one digit per purchase, as in src/shared/sk_verdicts_x.h; seq is
-- the last one given, so the k-th of n accepted has seq - n + k.
--
-- Errors: "SECKILL ..." when the sale's state is missing or damaged, and Redis'
-- own (WRONGTYPE, OOM, READONLY ...).  Scripts do not roll back, so types,
-- values, permissions and every argument are proved before the first write;
-- after an error nothing was taken.

local ACCEPTED, REPEAT, SOLD_OUT = "1", "2", "3"
local NOT_STARTED, ENDED, NOT_ELIGIBLE = "4", "5", "6"
local CLOSED, LIMITED, BAD_REQUEST = "7", "8", "9"

local call, argv = redis.call, ARGV
local find, format, sub, floor = string.find, string.format, string.sub, math.floor
local facts, stock, buyers, orders, eligible = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local activity, argc = argv[1], #argv

local function refuse(what)
  return redis.error_reply("SECKILL " .. what)
end

-- a decimal that a double holds exactly, or nil; Redis counts with no "007"
local function number(text)
  if text and #text <= 15 and (text == "0" or find(text, "^[1-9]%d*$")) then
    return tonumber(text)
  end
end

-- ids go to 2^64 - 1: they are never numbers here
local function is_id(text)
  return find(text, "^[1-9]%d*$")
         and (#text < 20 or (#text == 20 and text <= "18446744073709551615"))
end

-- the limit's own arguments, behind the purchases
local limited = #KEYS > 5
local interval, burst
if limited then
  interval, burst = number(argv[argc - 1]), number(argv[argc])
  argc = argc - 2
end

-- what the caller remembers, behind the purchases too
local known_epoch, known_seq = 0, 0
if argc % 4 == 3 then
  known_epoch, known_seq = number(argv[argc - 1]), number(argv[argc])
  argc = argc - 2
end

if #KEYS < 5 or argc < 5 or argc % 4 ~= 1 then
  return refuse("admit takes five keys, an activity and four arguments per purchase")
end
if not (known_epoch and known_seq) then
  return refuse("what the caller remembers is not an epoch and a seq")
end
if limited and not (#KEYS - 5 == (argc - 1) / 4 and interval and interval > 0 and burst) then
  return refuse("admit takes one limit key per purchase, an interval and a burst")
end
if not is_id(activity) then
  return refuse("activity is not an id")
end
for i = 2, argc, 4 do
  if not is_id(argv[i]) then
    return refuse("user is not an id")
  end
  if not find(argv[i + 1], "^[1-9]%d*$") then
    return refuse("quantity is not a number")
  end
end

-- what is sold, when, and the generation of it all

local fact = call("HMGET", facts, "state", "start_ms", "end_ms", "max_quantity",
                  "epoch", "rev", "seq", "eligible")
local state = fact[1]
local start_ms, end_ms, max_quantity = number(fact[2]), number(fact[3]), number(fact[4])
local epoch, rev, seq = number(fact[5]), number(fact[6]), number(fact[7])

if not (state and start_ms and end_ms and max_quantity and epoch and rev and seq) then
  return refuse("facts of the activity are missing or damaged")
end

local left = number(call("GET", stock))
if not left then
  return refuse("stock is missing or not a number")
end

-- a wrong type is an error here, before anything is written
call("SCARD", buyers)
call("XLEN", orders)
local by_registration = fact[8] == "1"
if by_registration then
  call("SCARD", eligible)
end

-- a Redis user that may do only half of this is refused whole; Redis 6 can't tell
local may = redis.acl_check_cmd
if may and not (may("SADD", buyers, activity) and may("XADD", orders, "*", "v", "1")
                and may("DECRBY", stock, "1") and may("HSET", facts, "seq", "1")
                and may("HSETNX", facts, "seq", "1")) then
  return redis.error_reply("NOPERM admit needs SADD, XADD, DECRBY, HSET and HSETNX")
end

if limited and may and not (may("MGET", KEYS[6]) and may("SET", KEYS[6], "1", "PX", "1")) then
  return redis.error_reply("NOPERM admit needs MGET and SET for scope=cluster")
end

local time = call("TIME")
local seconds, millis = tonumber(time[1]), floor(tonumber(time[2]) / 1000)
local now_ms = seconds * 1000 + millis

-- the only write before the purchases: they are all refused then

if state == "open" and (epoch < known_epoch or (epoch == known_epoch and seq < known_seq)) then
  state, rev = "paused", rev + 1
  call("HSET", facts, "state", state, "rev", rev)
end

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
  local days = floor(seconds / 86400)
  local second = seconds % 86400
  -- civil date of a day count, years beginning in March
  local z = days + 719468
  local era = floor(z / 146097)
  local doe = z - era * 146097
  local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524)
                     - floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))
  local mp = floor((5 * doy + 2) / 153)
  local day = doy - floor((153 * mp + 2) / 5) + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return format("%02d%02d%02d%02d%02d%02d%03d%06d", year % 100, month, day,
                floor(second / 3600), floor(second / 60) % 60, second % 60,
                millis, tonumber(sub(activity, -6)))
end

-- The generic cell rate algorithm, as in src/http/ngx_http_seckill_user.c: the
-- value is the time until which a user's requests use up the allowed rate; one
-- key and its expiry are written in one step.

local until_ms = {}
if limited then
  local values = call("MGET", unpack(KEYS, 6))
  for k = 1, #KEYS - 5 do
    -- not a number of ours: as if it were not there
    until_ms[KEYS[5 + k]] = number(values[k] or nil) or 0
  end
end

local function over_limit(key)
  local ahead = until_ms[key] - now_ms
  -- more than is ever charged is from a slower rate, no longer in force
  if ahead < 0 or ahead > interval * (burst + 1) then
    ahead = 0
  end
  if ahead > interval * burst then
    return true
  end
  until_ms[key] = now_ms + ahead + interval
  call("SET", key, format("%d", until_ms[key]), "PX", format("%d", ahead + interval))
  return false
end

local verdicts, count, taken = {}, 0, 0
local head, accepted_ms

for i = 2, argc, 4 do
  local user, quantity = argv[i], tonumber(argv[i + 1])
  local verdict = gate

  if limited and over_limit(KEYS[6 + count]) then
    verdict = LIMITED
  elseif not verdict then
    if by_registration and call("SISMEMBER", eligible, user) == 0 then
      verdict = NOT_ELIGIBLE
    elseif quantity > max_quantity then
      verdict = BAD_REQUEST
    elseif quantity > left then
      verdict = SOLD_OUT
    end
  end

  if verdict then
    if verdict ~= LIMITED and call("SISMEMBER", buyers, user) == 1 then
      verdict = REPEAT
    end

  elseif call("SADD", buyers, user) == 0 then
    verdict = REPEAT

  else
    if not head then
      head, accepted_ms = order_no_head(), format("%d", now_ms)
    end
    verdict = ACCEPTED
    left = left - quantity
    taken = taken + quantity
    seq = seq + 1
    call("XADD", orders, "*", "v", "1", "user", user, "activity", activity,
         "quantity", argv[i + 1], "epoch", fact[5], "seq", format("%d", seq),
         "order_no", format("%s%07d%04d", head, seq % 10000000, sub(user, -4)),
         "accepted_ms", accepted_ms, "request_id", argv[i + 2], "ext", argv[i + 3])
  end

  count = count + 1
  verdicts[count] = verdict
end

if taken > 0 then
  call("DECRBY", stock, taken)
  call("HSET", facts, "seq", seq)

else
  -- a demoted or cut off node has no word of its own on what is sold out: a
  -- write that changes nothing asks.  Full memory or disk leave the word valid.
  local word = redis.pcall("HSETNX", facts, "state", state)
  if type(word) == "table" and (find(word.err, "READONLY", 1, true)
                                or find(word.err, "NOREPLICAS", 1, true)) then
    return word
  end
end

return { now_ms, epoch, rev, seq, left, table.concat(verdicts) }
