-- Admit a batch of purchases of one activity: the only place that sells.
--
-- KEYS[1] activity, hash   KEYS[2] stock, string   KEYS[3] order_users, set
-- KEYS[4] orders, stream   KEYS[5] eligible, set
-- KEYS[6..] limit, string: one per purchase, where all nodes share the limit
-- ARGV[1] activity id   ARGV[2] how many purchases   ARGV[3] 2 or 0: values of the
--      mark   ARGV[4] 2 or 0: values of the limit, 2 with limit keys; then for each
--      purchase: user, quantity, request_id, ext; the mark: the last epoch and seq
--      that Redis told the caller; the limit: milliseconds per request, burst
--
-- Facts that are behind what the caller remembers, or fewer buyers than numbers
-- were given: Redis lost purchases.  The sale is paused before anybody can be
-- given their numbers again.
--
-- Returns { time_ms, epoch, rev, seq, stock left, verdicts }: verdicts is a
-- string of one digit per purchase, as in src/shared/sk_verdicts_x.h; seq is
-- the last one given, so the k-th of n accepted has seq - n + k.  A seventh
-- part, where there is one, is for the log: what went wrong.
--
-- Errors: "SECKILL ..." when the sale's state is missing or damaged, and Redis'
-- own (WRONGTYPE, OOM, READONLY ...).  Scripts do not roll back, so types,
-- values, rights and every argument are proved before the first write; after an
-- error nothing was taken.  Once something is written nothing throws any more:
-- a purchase that can't be queued is taken back, what was queued before it is
-- booked, and the rest hear BUSY.

local BUSY, ACCEPTED, REPEAT, SOLD_OUT = "0", "1", "2", "3"
local NOT_STARTED, ENDED, NOT_ELIGIBLE = "4", "5", "6"
local CLOSED, LIMITED, BAD_REQUEST = "7", "8", "9"

local call, pcall, argv = redis.call, redis.pcall, ARGV
local find, format, sub, floor = string.find, string.format, string.sub, math.floor
local facts, stock, buyers, orders, eligible = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local activity, argc = argv[1], #argv

local function refuse(what)
  return redis.error_reply("SECKILL " .. what)
end

-- a decimal that a double holds exactly, or nil; Redis counts with no "007"
local function number(text)
  if text == "1" then  -- most often
    return 1
  elseif text and #text <= 15 and (text == "0" or find(text, "^[1-9]%d*$")) then
    return tonumber(text)
  end
end

-- ids go to 2^64 - 1: they are never numbers here
local function is_id(text)
  return find(text, "^[1-9]%d*$")
         and (#text < 20 or (#text == 20 and text <= "18446744073709551615"))
end

-- what comes first says how much of what follows, in this order

local purchases, marked, limited = tonumber(argv[2]) or 0, argv[3] == "2", argv[4] == "2"
local last = 4 + 4 * purchases

if purchases < 1 or argc ~= last + (marked and 2 or 0) + (limited and 2 or 0)
   or not (marked or argv[3] == "0") or not (limited or argv[4] == "0")
   or #KEYS ~= 5 + (limited and purchases or 0)
then
  return refuse("admit takes five keys, a key per limit and four arguments per purchase")
end

local known_epoch, known_seq = 0, 0
if marked then
  known_epoch, known_seq = number(argv[last + 1]), number(argv[last + 2])
  if not (known_epoch and known_seq) then
    return refuse("what the caller remembers is not an epoch and a seq")
  end
end

local interval, burst
if limited then
  interval, burst = number(argv[argc - 1]), number(argv[argc])
  if not (interval and interval > 0 and burst) then
    return refuse("the limit is not an interval and a burst")
  end
end

if not is_id(activity) then
  return refuse("activity is not an id")
end
for i = 5, last, 4 do
  if not is_id(argv[i]) then
    return refuse("user is not an id")
  end
  if argv[i + 1] ~= "1" and not find(argv[i + 1], "^[1-9]%d*$") then
    return refuse("quantity is not a number")
  end
end

-- what is sold, when, and the generation of it all

local fact = call("HMGET", facts, "state", "start_ms", "end_ms", "max_quantity", "epoch", "rev",
                  "seq", "eligible", "buyers_extra")
local state = fact[1]
local start_ms, end_ms, max_quantity = number(fact[2]), number(fact[3]), number(fact[4])
local epoch, rev, seq = number(fact[5]), number(fact[6]), number(fact[7])

if not (state and start_ms and end_ms and max_quantity and epoch and rev and seq) then
  return refuse("facts of the activity are missing or damaged")
end

-- buyers that have no seq, less numbers without a buyer; 0.1.0 does not keep it
local extra = fact[9]
if extra then
  extra = number(extra) or (sub(extra, 1, 1) == "-" and number(sub(extra, 2)) and tonumber(extra))
  if not extra then
    return refuse("facts of the activity are damaged: buyers_extra")
  end
end

local left = number(call("GET", stock))
if not left then
  return refuse("stock is missing or not a number")
end

-- a wrong type is an error here, before anything is written
local known = call("SCARD", buyers)
if call("XLEN", orders) == 0 and call("EXISTS", orders) == 0 then
  return refuse("orders is missing: the stream of purchases is lost")
end
local by_registration = fact[8] == "1"
if by_registration and call("SCARD", eligible) == 0
   and call("HGET", facts, "eligible_had") == "1" then
  return refuse("eligible is missing: the registered users are lost")
end

-- An error that a pcall gave, as one that is returned: Redis 6.2 says where in
-- the script before it says what.
local function pass_on(err)
  err = string.match(string.gsub(err, "^@user_script: %d+: ", ""), "^%-?([^\r\n]*)")
  if string.find(err, "executing the script", 1, true)
     or string.find(err, "o permissions to", 1, true) then
    err = "NOPERM " .. string.gsub(err, "^NOPERM ", "")
  end
  return redis.error_reply(err)
end

local time = call("TIME")
local seconds, millis = tonumber(time[1]), floor(tonumber(time[2]) / 1000)
local now_ms = seconds * 1000 + millis

-- numbers or buyers that are gone: nobody may be given those numbers again

local trouble
if state == "open" then
  if epoch < known_epoch or (epoch == known_epoch and seq < known_seq) then
    trouble = "paused: numbers that were given are lost"
  elseif extra and known < seq + extra then
    trouble = format("paused: order_users holds %d buyers, %d are missing", known,
                     seq + extra - known)
  end
  if trouble then
    state, rev = "paused", rev + 1
  end
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

-- A Redis user that may do only half of what a purchase takes is refused whole.
-- Redis 6.2 can't tell: there each command is tried in a form that changes
-- nothing, and only who has the right to it hears the error that it asks for.

local may = redis.acl_check_cmd

if (gate or left == 0) and not (trouble or limited) then  -- luacheck: ignore 542
  -- nothing is written then

elseif may then
  if not (may("SADD", buyers, activity) and may("XADD", orders, "*", "v", "1")
          and may("DECRBY", stock, "1") and may("HSET", facts, "seq", "1")
          and may("SREM", buyers, activity) and may("SISMEMBER", buyers, activity)) then
    return redis.error_reply("NOPERM admit needs SADD, XADD, DECRBY, HSET, SREM and SISMEMBER")
  end
  if limited and not (may("MGET", KEYS[6]) and may("SET", KEYS[6], "1", "PX", "1")) then
    return redis.error_reply("NOPERM admit needs MGET and SET for scope=cluster")
  end

else
  for _, form in ipairs({
    { "WRONGTYPE", "SADD", orders, "" },
    { "greater than 0-0", "XADD", orders, "0-0", "v", "1" },
    { "not an integer", "DECRBY", stock, "x" },
    { "wrong number", "HSET", facts, "seq", "1", "x" },
    { "", "SREM", buyers, "" },
    { "", "SISMEMBER", buyers, "" },
    limited and { "syntax error", "SET", KEYS[6], "1", "NX", "XX" } or nil,
  }) do
    local reply = pcall(unpack(form, 2))
    if type(reply) == "table" and not (form[1] ~= "" and find(reply.err, form[1], 1, true)) then
      return pass_on(reply.err)
    end
  end
end

-- The generic cell rate algorithm, as in src/http/ngx_http_seckill_user.c: the
-- value is the time until which a user's requests use up the allowed rate; one
-- key and its expiry are written in one step.

local until_ms, over_limit
local values = limited and call("MGET", unpack(KEYS, 6))

-- the only write before the purchases: they are all refused then
if trouble then
  call("HSET", facts, "state", state, "rev", rev)
end

if limited then
  until_ms = {}
  for k = 1, #KEYS - 5 do
    -- not a number of ours: as if it were not there
    until_ms[KEYS[5 + k]] = number(values[k] or nil) or 0
  end

  over_limit = function(key)
    local ahead = until_ms[key] - now_ms
    -- more than is ever charged is from a slower rate, no longer in force
    if ahead < 0 or ahead > interval * (burst + 1) then
      ahead = 0
    end
    if ahead > interval * burst then
      return true
    end
    until_ms[key] = now_ms + ahead + interval
    local charged = pcall("SET", key, format("%d", until_ms[key]), "PX",
                          format("%d", ahead + interval))
    trouble = charged.err or trouble
    return false
  end
end

local verdicts, count, taken = {}, 0, 0
local head, accepted_ms, open_books

for i = 5, last, 4 do
  local user, quantity = argv[i], argv[i + 1] == "1" and 1 or tonumber(argv[i + 1])
  local verdict = gate

  if limited and gate ~= BUSY and over_limit(KEYS[6 + count]) then
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
      -- yymmddHHMMSSmmm in UTC and activity mod 10^6: the part of the order_no that
      -- all purchases of the batch share; a civil date of a day count, years begin
      -- in March
      local days, second = floor(seconds / 86400), seconds % 86400
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
      head = format("%02d%02d%02d%02d%02d%02d%03d%06d", year % 100, month, day,
                    floor(second / 3600), floor(second / 60) % 60, second % 60,
                    millis, tonumber(sub(activity, -6)))
      accepted_ms = format("%d", now_ms)
    end

    local entry = pcall("XADD", orders, "*", "v", "1", "user", user, "activity", activity,
         "quantity", argv[i + 1], "epoch", fact[5], "seq", format("%d", seq + 1),
         "order_no", format("%s%07d%04d", head, (seq + 1) % 10000000, sub(user, -4)),
         "accepted_ms", accepted_ms, "request_id", argv[i + 2], "ext", argv[i + 3])

    if type(entry) == "string" then
      verdict = ACCEPTED
      left = left - quantity
      taken = taken + quantity
      seq = seq + 1

    else
      -- the stream at its last id, most likely: it takes nothing more
      verdict, gate = BUSY, BUSY
      trouble = "orders takes no purchase: " .. (entry and entry.err or "it is gone")
      if pcall("SREM", buyers, user) ~= 1 then
        open_books = "user " .. user .. " has no purchase and stays in order_users"
      end
      if limited then
        -- who was charged and hears BUSY is not to blame
        local key = KEYS[6 + count]
        until_ms[key] = until_ms[key] - interval
        pcall("SET", key, format("%d", until_ms[key]), "PX",
              format("%d", math.max(until_ms[key] - now_ms, 1)))
      end
    end
  end

  count = count + 1
  verdicts[count] = verdict
end

if taken > 0 then
  -- first the seq: given twice it would be worse than a unit too many
  local kept, booked = pcall("HSET", facts, "seq", seq), pcall("DECRBY", stock, taken)
  if kept ~= 0 or booked ~= left then
    open_books = "seq and stock can't be written"
  end

else
  -- a demoted or cut off node has no word of its own on what is sold out: a
  -- write that changes nothing asks.  Full memory or disk leave the word valid.
  local word = pcall("HSETNX", facts, "state", state)
  if type(word) == "table" and not (find(word.err, "OOM", 1, true)
                                    or find(word.err, "MISCONF", 1, true)) then
    return pass_on(word.err)
  end
end

-- what can't be closed is not sold on: "restore" makes it whole
if open_books then
  trouble, rev = "paused: " .. open_books, rev + 1
  pcall("HSET", facts, "state", "paused", "rev", rev)
end

return { now_ms, epoch, rev, seq, left, table.concat(verdicts), trouble }
