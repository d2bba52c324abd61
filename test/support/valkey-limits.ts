import { afterAll, beforeAll } from "bun:test";
import { createHash } from "node:crypto";
import { parseValkeyUrl } from "../../src/domain/addresses.ts";
import { systemClock, type Clock } from "../../src/domain/clock.ts";
import { BudgetTally } from "../../src/store/limits/budget-tally.ts";
import {
  ValkeyClient,
  type ValkeyClientOptions,
  type ValkeyScript,
} from "../../src/store/limits/valkey/client.ts";
import {
  ValkeyLimits,
  type ValkeyLimitsOptions,
} from "../../src/store/limits/valkey/limit-store.ts";
import { valkeyOfTests, type ValkeyServer } from "./valkey-server.ts";

/** A client as a process has it. The time-out is generous: the machine may be busy. */
export async function clientOf(
  { url }: Pick<ValkeyServer, "url">,
  options: Partial<Omit<ValkeyClientOptions, "address">> = {},
): Promise<ValkeyClient> {
  const address = parseValkeyUrl(url);
  if (address === undefined) throw new Error(`${url} is no address`);
  const client = new ValkeyClient({ address, timeoutMs: 60_000, ...options });
  await client.open();
  return client;
}

/** Empties a server that processes trust nevertheless: as if it had had all data for long. */
export async function emptied(server: Pick<ValkeyServer, "command">): Promise<void> {
  await server.command("FLUSHALL");
  await server.command("SET", "sluice:{0}:since", "0::");
}

/** A server and a client of it, for the tests of one block. */
export function valkeyClientOfTests(): {
  readonly server: ValkeyServer;
  readonly client: ValkeyClient;
} {
  const own = valkeyOfTests();
  let client: ValkeyClient | undefined;
  beforeAll(async () => {
    client = await clientOf(own.server);
  });
  afterAll(() => client?.close());
  return {
    get server() {
      return own.server;
    },
    get client() {
      if (client === undefined) throw new Error("the client is opened before the first test");
      return client;
    },
  };
}

let processes = 0;

/** The limits of one process. */
export async function limitsOver(
  client: Pick<ValkeyClient, "run" | "shards" | "onConnection">,
  options: Partial<ValkeyLimitsOptions> = {},
): Promise<ValkeyLimits> {
  const limits = new ValkeyLimits({
    client,
    clock: systemClock,
    random: Math.random,
    tally: new BudgetTally(`process${(processes += 1)}`),
    processes: () => 1,
    timeoutMs: 60_000,
    onError(error) {
      throw error;
    },
    ...options,
  });
  await limits.tick();
  return limits;
}

/**
 * A client whose scripts read the time of a test's clock, sent as two more parameters. Keys expire
 * in that time as well.
 */
export function steeredBy(
  clock: Pick<Clock, "monotonic">,
  client: Pick<ValkeyClient, "run" | "shards">,
): Pick<ValkeyClient, "run" | "shards" | "onConnection"> {
  return {
    shards: client.shards,
    onConnection: () => undefined,
    run(script, keys, parameters) {
      const now = clock.monotonic();
      const time = [Math.floor(now / 1_000), Math.floor((now % 1_000) * 1_000)];
      return client.run(steered(script), keys, [...parameters, ...time]);
    },
  };
}

const known = new Map<string, ValkeyScript>();

/** The script with the server's time replaced by that of its last parameters. */
function steered({ name, text }: ValkeyScript): ValkeyScript {
  const digest = createHash("sha1").update(text).digest("hex");
  const found = known.get(digest);
  if (found !== undefined) return found;
  const script = { name, text: steering + text };
  known.set(digest, script);
  return script;
}

/** Stands between a script and the server: expiry times are kept in a hash of their own. */
const steering = `
local server, ends = redis, 'sluice-test:ends'
local time = {ARGV[#ARGV - 1], ARGV[#ARGV]}
local function endsAfter(ms) return time[1] * 1000 + math.floor(time[2] / 1000) + ms end
for _, key in ipairs(KEYS) do
  local last = server.call('HGET', ends, key)
  if last and tonumber(last) <= endsAfter(0) then
    server.call('DEL', key)
    server.call('HDEL', ends, key)
  end
end
local redis = setmetatable({}, { __index = server })
function redis.call(command, key, ...)
  if command == 'TIME' then return time end
  if command == 'PEXPIRE' then return server.call('HSET', ends, key, endsAfter(...)) end
  if command == 'DEL' then server.call('HDEL', ends, key) end
  if command ~= 'SET' then return server.call(command, key, ...) end
  local options, kept, lifetime = {...}, {}, nil
  for i = 1, #options do
    if options[i - 1] == 'PX' then lifetime = options[i]
    elseif options[i] ~= 'PX' and options[i] ~= 'KEEPTTL' then kept[#kept + 1] = options[i] end
  end
  local done = server.call('SET', key, unpack(kept))
  if done and lifetime then server.call('HSET', ends, key, endsAfter(lifetime)) end
  return done
end
`;
