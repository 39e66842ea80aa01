#include "provider/redis/scripts.h"

#define NOW                                                                                        \
    "local t = redis.call('TIME')\n"                                                               \
    "local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"                                          \
    "local function whole(n) return string.format('%.0f', n) end\n"

/* An epoch is decimal, below 2^53, beyond which doubles do not count. Foreign values in place of an
 * epoch, an id or a heartbeat are returned truncated. */
#define EPOCH_END "9007199254740991"
#define COUNTED                                                                                    \
    "local function counted(text)\n"                                                               \
    "  return text and string.match(text, '^%d+$') and tonumber(text) or 0\n"                      \
    "end\n"                                                                                        \
    "local function most_of(text) return math.min(counted(text), 86400000) end\n"

/* {HELD, the holder's epoch if it is one of ours, the time left, its id, its max-lease if it is one
 * of ours, its heartbeat's age} */
#define HELD_BY                                                                                    \
    COUNTED                                                                                        \
    "local function held(master, record, holder, beats)\n"                                         \
    "  local of = redis.call('HMGET', record, 'epoch', 'holder', 'most')\n"                        \
    "  local epoch, most = 0, 0\n"                                                                 \
    "  if of[2] == holder then epoch, most = counted(of[1]), most_of(of[3]) end\n"                 \
    "  if epoch >= " EPOCH_END " then epoch = 0 end\n"                                             \
    "  local found = {0, epoch, redis.call('PTTL', master), string.sub(holder, 1, 256), most}\n"   \
    "  if beats ~= '' then\n"                                                                      \
    "    local beat = redis.pcall('GET', beats .. holder)\n"                                       \
    "    beat = type(beat) == 'string' and tonumber(beat)\n"                                       \
    "    found[6] = beat and math.max(-1e15, math.min(now - beat, 1e15)) or 'none'\n"              \
    "  end\n"                                                                                      \
    "  return found\n"                                                                             \
    "end\n"

/* A server's history changes with each start and each promotion. A server that was away may have
 * missed a lease, so it grants none for as long as the longest lease could last. The script asks
 * the server itself for its history, since that may change under a connection. Without a record,
 * the server may have lost its data at its start at the latest; a replica may have missed something
 * until now. The uptime is the difference of two times in whole seconds, so up to one second too
 * long. */
#define HISTORY                                                                                    \
    "local news = redis.call('INFO', 'replication')\n"                                             \
    "local history = string.match(news, 'master_replid:(%w+)') or '?'\n"                           \
    "local function forgotten_at()\n"                                                              \
    "  if not string.find(news, 'second_repl_offset:-1', 1, true) then return now end\n"           \
    "  local up = string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)')\n"         \
    "  return now - math.max((tonumber(up) or 0) - 1, 0) * 1000\n"                                 \
    "end\n"

/* A process of seed 001 renews with GET and then EXPIRE. If its lock runs out between the two and
 * is taken at once, EXPIRE finds the next leader's lock, and that process believes that it leads.
 * So a lock of such a process that ran out is not taken for one of its intervals, in which EXPIRE
 * finds nothing. A lock that is gone before its end was deleted: its holder leads no more. */
static const char take[] = NOW HELD_BY
    "local ttl, least = tonumber(ARGV[2]), tonumber(ARGV[3])\n"
    "local interval = tonumber(ARGV[10])\n"
    "local holder = redis.call('GET', KEYS[1])\n"
    "if holder and holder ~= ARGV[1] then\n"
    "  local found = held(KEYS[1], KEYS[3], holder, ARGV[5])\n"
    "  if interval > 0 and found[2] == 0 and found[3] >= 0 then\n"
    "    redis.call('HSET', KEYS[3], 'foreign', whole(now + found[3]))\n"
    "  end\n"
    "  return found\n"
    "end\n" HISTORY
    "local of = redis.call('HMGET', KEYS[3], 'epoch', 'holder', 'server', 'since', 'most',\n"
    "                      'foreign', 'lock')\n"
    /* Another layout's lock has another key: nothing is granted while that one is held. */
    "if of[7] and of[7] ~= KEYS[1] and of[2] and redis.pcall('GET', of[7]) == of[2] then\n"
    "  return held(of[7], KEYS[3], of[2], ARGV[5])\n"
    "end\n"
    "local epoch, since = counted(of[1]), tonumber(of[4]) or 0\n"
    "if epoch >= " EPOCH_END " then\n"
    "  return redis.error_reply('SPOILED no epoch is above that of ' .. KEYS[3] .. ': DEL it')\n"
    "end\n"
    "if of[3] ~= history or since > now then\n"
    "  since = of[3] and now or forgotten_at()\n"
    "  redis.call('HSET', KEYS[3], 'server', history, 'since', whole(since))\n"
    "end\n"
    "local wait = math.max(tonumber(ARGV[9]), most_of(of[5]))\n"
    "if since + wait > now then return {2, 0, since + wait - now} end\n"
    "local foreign = counted(of[6])\n"
    "if now + 1 >= foreign and now < foreign + interval then\n"
    "  return {2, 0, foreign + interval - now}\n"
    "end\n"
    "local wanted = tonumber(ARGV[6]) or 0\n"
    /* A reply was lost: the lock is ours already. */
    "if holder and of[2] == holder and epoch > least and epoch >= wanted then\n"
    "  redis.call('PEXPIRE', KEYS[1], ttl)\n"
    "  redis.call('SET', KEYS[2], whole(now), 'PX', ARGV[4])\n"
    "  return {1, epoch}\n"
    "end\n"
    "epoch = math.max(epoch + 1, wanted > 0 and wanted or now, least + 1)\n"
    "redis.call('SET', KEYS[1], ARGV[1], 'PX', ttl)\n"
    "redis.call('SET', KEYS[2], whole(now), 'PX', ARGV[4])\n"
    "redis.call('HSET', KEYS[3], 'epoch', whole(epoch), 'holder', ARGV[1], 'most', ARGV[8],\n"
    "           'lock', KEYS[1])\n"
    "if of[6] then redis.call('HDEL', KEYS[3], 'foreign') end\n"
    "if ARGV[7] ~= 'quiet' then\n"
    "  redis.call('PUBLISH', KEYS[4], 'taken ' .. whole(epoch) .. ' ' .. ARGV[1])\n"
    "end\n"
    "if of[1] and not string.match(of[1], '^%d+$') then\n"
    "  return {1, epoch, 0, string.sub(of[1], 1, 256)}\n"
    "end\n"
    "return {1, epoch}\n";

static const char look[] =
    NOW HELD_BY "local holder = redis.call('GET', KEYS[1])\n"
                "if holder then return held(KEYS[1], KEYS[2], holder, ARGV[1]) end\n"
                "return {3, 0, 0}\n";

/* The lock or the record may be gone, or be older than what the leader was granted: the server has
 * lost data, or the lock was deleted. If the record shows no later leadership and no release, no
 * other process was granted a lease since, and the leader gets its lock back, in its epoch. */
static const char renew[] =
    NOW HELD_BY "local holder = redis.call('GET', KEYS[1])\n"
                "local of = redis.call('HMGET', KEYS[3], 'epoch', 'server', 'holder')\n"
                "local known, ours = counted(of[1]), tonumber(ARGV[3])\n"
                "local is_spoilt = of[1] and not string.match(of[1], '^%d+$')\n"
                "if holder and holder ~= ARGV[1] or known > ours or is_spoilt then\n"
                "  if holder then return held(KEYS[1], KEYS[3], holder, ARGV[6]) end\n"
                "  return {3, 0, 0}\n"
                "end\n"
                "if not holder and known == ours and of[3] ~= ARGV[1] then return {3, 0, 0} end\n"
                "local is_restored = not holder or known < ours\n"
                "if is_restored then\n"
                "  redis.call('SET', KEYS[1], ARGV[1])\n"
                "  redis.call('HSET', KEYS[3], 'epoch', ARGV[3], 'holder', ARGV[1],\n"
                "             'most', ARGV[7], 'lock', KEYS[1])\n"
                "end\n"
                /* The renewing process held the lock until now, so this server has missed no lease:
                 * after this one there is nothing to wait for. */
                "if ARGV[4] ~= '' and (is_restored or ARGV[4] ~= of[2]) then\n"
                "  redis.call('HSET', KEYS[3], 'server', ARGV[4], 'since', 0)\n"
                "end\n"
                "redis.call('PEXPIRE', KEYS[1], ARGV[2])\n"
                "redis.call('SET', KEYS[2], whole(now), 'PX', ARGV[5])\n"
                "return {1, ours}\n";

static const char raise_epoch[] =
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {3, 0, 0} end\n"
    "if redis.call('HGET', KEYS[2], 'epoch') ~= ARGV[2] then return {3, 0, 0} end\n"
    "redis.call('HSET', KEYS[2], 'epoch', ARGV[3])\n"
    "return {1, tonumber(ARGV[3])}\n";

/* Epoch 0: any. The notice carries the epoch that is over. */
static const char release[] =
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end\n"
    "local epoch = redis.call('HGET', KEYS[3], 'epoch') or ''\n"
    "if ARGV[2] ~= '0' and epoch ~= ARGV[2] then return 0 end\n"
    "redis.call('DEL', KEYS[1], KEYS[2])\n"
    "redis.call('HDEL', KEYS[3], 'holder')\n"
    "if ARGV[3] ~= '' then\n"
    "  redis.call('PUBLISH', KEYS[4], ARGV[3] .. ' ' .. string.sub(epoch, 1, 20))\n"
    "end\n"
    "return 1\n";

/* Deletes stale heartbeats, a few keys at a time. A value that is no time is not ours. */
static const char sweep[] =
    NOW "local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 100)\n"
        "for _, key in ipairs(found[2]) do\n"
        "  local beat = redis.pcall('GET', key)\n"
        "  beat = type(beat) == 'string' and tonumber(beat)\n"
        "  if beat and now - beat > tonumber(ARGV[3]) then redis.call('DEL', key) end\n"
        "end\n"
        "return found[1]\n";

/* Removes expired entries, some at a time; returns their number. */
#define SWEEP                                                                                      \
    "local function sweep(processes, expiry, channels, slaves)\n"                                  \
    "  local gone = redis.call('ZRANGEBYSCORE', expiry, '-inf', now, 'LIMIT', 0, 1000)\n"          \
    "  for _, id in ipairs(gone) do\n"                                                             \
    "    redis.call('HDEL', processes, id)\n"                                                      \
    "    redis.call('HDEL', channels, id)\n"                                                       \
    "    redis.call('HDEL', slaves, id)\n"                                                         \
    "    redis.call('ZREM', expiry, id)\n"                                                         \
    "  end\n"                                                                                      \
    "  return #gone\n"                                                                             \
    "end\n"

/* Fields of a hash have lifetimes of their own if the server has commands for that: then an entry
 * also ends for processes that do not know the sorted set. If the caller does not know which
 * commands the server has, the script asks. `put` returns whether the field is new. */
#define LIFETIMES                                                                                  \
    "local function has(name)\n"                                                                   \
    "  local answer = redis.pcall('COMMAND', 'INFO', name)\n"                                      \
    "  return type(answer) == 'table' and type(answer[1]) == 'table'\n"                            \
    "end\n"                                                                                        \
    "if way == '' then\n"                                                                          \
    "  way = has('HSETEX') and 'hsetex' or has('HPEXPIRE') and 'hpexpire' or 'sorted-set'\n"       \
    "end\n"                                                                                        \
    "local function put(key, value)\n"                                                             \
    "  if way == 'hsetex' then\n"                                                                  \
    "    if redis.call('HSETEX', key, 'FXX', 'PX', ttl, 'FIELDS', 1, id, value) == 1 then\n"       \
    "      return 0\n"                                                                             \
    "    end\n"                                                                                    \
    "    redis.call('HSETEX', key, 'PX', ttl, 'FIELDS', 1, id, value)\n"                           \
    "    return 1\n"                                                                               \
    "  end\n"                                                                                      \
    "  local is_new = redis.call('HSET', key, id, value)\n"                                        \
    "  if way == 'hpexpire' then redis.call('HPEXPIRE', key, ttl, 'FIELDS', 1, id) end\n"          \
    "  return is_new\n"                                                                            \
    "end\n"

/* One election: the number of its entries, and how many of them have a lifetime, as all of ours do.
 * If there is one entry there is nothing to sweep. */
#define ENROL                                                                                      \
    "local function enrol(at, slave)\n"                                                            \
    "  local processes, expiry, channels, wake, slaves, leader = unpack(KEYS, at, at + 5)\n"       \
    "  local is_new = put(processes, json)\n"                                                      \
    "  redis.call('ZADD', expiry, now + ttl, id)\n"                                                \
    "  local is_whole = is_new == 1 or how ~= 'again'\n"                                           \
    "  if is_whole or way ~= 'sorted-set' then put(channels, channel) end\n"                       \
    "  if role == 'master' then\n"                                                                 \
    "    redis.call('SET', leader, json, 'PX', ttl)\n"                                             \
    "    if is_whole then redis.call('HDEL', slaves, id) end\n"                                    \
    "  else\n"                                                                                     \
    "    put(slaves, slave)\n"                                                                     \
    "  end\n"                                                                                      \
    "  local count = redis.call('HLEN', processes)\n"                                              \
    "  if count == 1 and how == 'again' then return 1, 1 end\n"                                    \
    "  if sweep(processes, expiry, channels, slaves) > 0 then\n"                                   \
    "    redis.call('PUBLISH', wake, 'members')\n"                                                 \
    "    count = redis.call('HLEN', processes)\n"                                                  \
    "  elseif is_new == 1 then\n"                                                                  \
    "    redis.call('PUBLISH', wake, 'members ' .. id)\n"                                          \
    "  end\n"                                                                                      \
    "  return count, role == 'master' and redis.call('ZCARD', expiry) or count\n"                  \
    "end\n"

static const char register_process[] =
    NOW SWEEP "local id, ttl, channel, role, how, way, json = unpack(ARGV)\n" LIFETIMES ENROL
              "local answer = {way}\n"
              "for i = 0, #KEYS / 6 - 1 do\n"
              "  answer[2 * i + 2], answer[2 * i + 3] = enrol(6 * i + 1, ARGV[8 + i])\n"
              "end\n"
              "return answer\n";

static const char leave[] = "redis.call('ZREM', KEYS[2], ARGV[1])\n"
                            "redis.call('HDEL', KEYS[3], ARGV[1])\n"
                            "redis.call('HDEL', KEYS[5], ARGV[1])\n"
                            "if redis.call('HDEL', KEYS[1], ARGV[1]) == 1 then\n"
                            "  redis.call('PUBLISH', KEYS[4], 'members')\n"
                            "end\n"
                            "return 1\n";

static const char forget[] = "if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] or\n"
                             "   redis.call('ZADD', KEYS[2], 'NX', 0, ARGV[1]) == 0 then\n"
                             "  return 0\n"
                             "end\n"
                             "redis.call('ZREM', KEYS[2], ARGV[1])\n"
                             "redis.call('HDEL', KEYS[1], ARGV[1])\n"
                             "redis.call('HDEL', KEYS[3], ARGV[1])\n"
                             "redis.call('HDEL', KEYS[5], ARGV[1])\n"
                             "redis.call('PUBLISH', KEYS[4], 'members')\n"
                             "return 1\n";

/* Skips entries that are too large to be ours, and those beyond the size of one reply. If there are
 * more than an election ever has, only entries with a lifetime count, as all of ours have. */
static const char members[] =
    NOW SWEEP "sweep(KEYS[1], KEYS[2], KEYS[3], KEYS[5])\n"
              "local ids\n"
              "if redis.call('HLEN', KEYS[1]) <= 8192 then ids = redis.call('HKEYS', KEYS[1])\n"
              "else ids = redis.call('ZRANGEBYSCORE', KEYS[2], now, '+inf', 'LIMIT', 0, 8192) end\n"
              "local found, bytes = {}, 0\n"
              "local function give(id, entry)\n"
              "  found[#found + 1] = string.sub(id, 1, 256)\n"
              "  found[#found + 1] = entry\n"
              "end\n"
              "for _, id in ipairs(ids) do\n"
              "  local size = redis.call('HSTRLEN', KEYS[1], id)\n"
              "  if size > 65536 or bytes + size > 16777216 then\n"
              "    give(id, false)\n"
              "  else\n"
              "    local entry = redis.call('HGET', KEYS[1], id)\n"
              "    if entry then give(id, entry) end\n"
              "    bytes = bytes + size\n"
              "  end\n"
              "end\n"
              "return found\n";

/* ---- State ----------------------------------------------------------------------------------- */

/* The message of a change: revision, length of the name, 1 for a value or 0, name, value. The reply
 * has the revision at which the key is then: 0 after its deletion.
 *
 * A revision is above the last one and not below the server's time in microseconds. So a server
 * that lost its last writes, or all, gives their revisions to no others. */
static const char put[] = NOW COUNTED
    "local at = tonumber(redis.call('HGET', KEYS[1], 'r')) or 0\n"
    "if ARGV[4] ~= 'any' and tonumber(ARGV[4]) ~= at then return {0, at} end\n"
    "if ARGV[3] == '0' and at == 0 then return {1, 0} end\n"
    "local last = counted(redis.call('GET', KEYS[2]))\n"
    "if last >= " EPOCH_END " then\n"
    "  return redis.error_reply('SPOILED no revision is above that of ' .. KEYS[2] .. ': DEL it')\n"
    "end\n"
    "local revision = math.max(last + 1, t[1] * 1000000 + t[2])\n"
    "redis.call('SET', KEYS[2], whole(revision))\n"
    "if ARGV[3] == '0' then\n"
    "  redis.call('DEL', KEYS[1])\n"
    "  redis.call('ZREM', KEYS[3], ARGV[1])\n"
    "else\n"
    "  redis.call('HSET', KEYS[1], 'd', ARGV[2], 'r', whole(revision))\n"
    "  redis.call('ZADD', KEYS[3], 0, ARGV[1])\n"
    "  if ARGV[5] == '0' then redis.call('PERSIST', KEYS[1])\n"
    "  else redis.call('PEXPIRE', KEYS[1], ARGV[5]) end\n"
    "end\n"
    "redis.call('PUBLISH', KEYS[4], whole(revision) .. ' ' .. #ARGV[1] .. ' ' .. ARGV[3] .. ' ' .. "
    "ARGV[1]\n"
    "           .. ARGV[2])\n"
    "return {1, ARGV[3] == '0' and 0 or revision}\n";

/* Skips values that are too large to be ours. */
#define FITTING                                                                                    \
    "local function fits(value)\n"                                                                 \
    "  return value[1] and value[2] and #value[1] <= 1048576 and #value[2] <= 32\n"                \
    "end\n"

static const char get[] = FITTING "local value = redis.call('HMGET', KEYS[1], 'd', 'r')\n"
                                  "if (value[1] or value[2]) and not fits(value) then\n"
                                  "  return {'', ''}\n"
                                  "end\n"
                                  "return value\n";

/* Name, data, revision; the latter two are "" for a foreign value. The reply is bounded. Behind the
 * names that begin with the prefix no name is looked at: watches list their keys each second. */
static const char list[] =
    FITTING "local last, behind = #ARGV[1], '+'\n"
            "while last > 0 and string.byte(ARGV[1], last) == 255 do last = last - 1 end\n"
            "if last > 0 then\n"
            "  behind = '(' .. string.sub(ARGV[1], 1, last - 1)\n"
            "           .. string.char(string.byte(ARGV[1], last) + 1)\n"
            "end\n"
            "local names = redis.call('ZRANGEBYLEX', KEYS[1], '[' .. ARGV[1], behind)\n"
            "local found, bytes = {}, 0\n"
            "local function give(name, data, revision)\n"
            "  bytes = bytes + #name + #data\n"
            "  found[#found + 1] = name\n"
            "  found[#found + 1] = data\n"
            "  found[#found + 1] = revision\n"
            "end\n"
            "for _, name in ipairs(names) do\n"
            "  if string.sub(name, 1, #ARGV[1]) ~= ARGV[1] then break end\n"
            "  local value = #name <= 512 and redis.pcall('HMGET', ARGV[2] .. name, 'd', 'r')\n"
            "  if value and not value.err and not value[1] and not value[2] then\n"
            "    redis.call('ZREM', KEYS[1], name)\n" /* its lifetime is over */
            "  elseif value and not value.err and fits(value) then\n"
            "    give(name, value[1], value[2])\n"
            "  else\n"
            "    give(string.sub(name, 1, 512), '', '')\n"
            "  end\n"
            "  if bytes > 50331648 then\n"
            "    return redis.error_reply('TOOBIG more than 48 MiB: ask for a longer prefix')\n"
            "  end\n"
            "end\n"
            "return found\n";

void scripts_fill(struct redis_script *ret)
{
    static const char *const texts[SCRIPT_COUNT] = {
        [SCRIPT_TAKE] = take,
        [SCRIPT_LOOK] = look,
        [SCRIPT_RENEW] = renew,
        [SCRIPT_RELEASE] = release,
        [SCRIPT_RAISE] = raise_epoch,
        [SCRIPT_LEAVE] = leave,
        [SCRIPT_REGISTER] = register_process,
        [SCRIPT_FORGET] = forget,
        [SCRIPT_MEMBERS] = members,
        [SCRIPT_PUT] = put,
        [SCRIPT_GET] = get,
        [SCRIPT_LIST] = list,
        [SCRIPT_SWEEP] = sweep,
    };

    for (int i = 0; i < SCRIPT_COUNT; i++) {
        ret[i] = (struct redis_script){.text = texts[i]};
    }
}
