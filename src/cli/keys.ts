import { issueKey } from "../admin/keys.ts";
import type { Config } from "../config/config.ts";
import type { Key } from "../domain/key.ts";
import type { Limits } from "../domain/plan.ts";
import type { KeyStore } from "../storage/store.ts";
import {
  CommandError,
  exitCodes,
  readArguments,
  UsageError,
  type Command,
  type CommandIo,
} from "./command.ts";
import { loadSettings, settingsOptions } from "./load-settings.ts";
import { openStores } from "./open-stores.ts";
import { formatTable } from "./table.ts";

const options = {
  ...settingsOptions,
  application: { type: "string" },
  plan: { type: "string" },
  environment: { type: "string" },
  "requests-per-minute": { type: "string" },
  "tokens-per-minute": { type: "string" },
  json: { type: "boolean" },
} as const;

type KeyArguments = ReturnType<typeof readArguments<typeof options>>["values"];

export const keysCommand: Command = {
  name: "keys",
  summary: "create, list and revoke API keys",
  help: `Usage: sluice keys create --application NAME --plan PLAN [--environment E]
       sluice keys list
       sluice keys revoke ID | KEY

Works on the database of the configuration, also while a gateway runs on it; a running gateway
follows within a second. A new key is printed once and stored only as a digest.

Options:
  --application NAME          what the key is issued to
  --plan PLAN                 pilot, standard, pro, enterprise, or a plan of the configuration
  --environment E             needed when the configuration has several
  --requests-per-minute N     this key's own limits; a custom plan needs both
  --tokens-per-minute N
  -c, --config FILE           configuration (default: SLUICE_CONFIG, else the demo's)
  --data-dir DIR              data directory of the demo (default ./data/demo)
  --json                      print JSON

Exit code: 0 done, 1 failed, 2 wrong usage.`,
  async run(args, io) {
    const { values, positionals } = readArguments(args, options);
    const [action, ...rest] = positionals;
    const { config } = loadSettings(values, io);
    switch (action) {
      case "create":
        return createKey(values, config, io);
      case "list":
        return listKeys(values, config, io);
      case "revoke":
        return revokeKey({ values, rest, config, io });
      default:
        throw new UsageError(`say what to do: create, list or revoke, not '${action ?? ""}'`);
    }
  },
};

interface KeyAction {
  readonly values: KeyArguments;
  readonly rest: readonly string[];
  readonly config: Config;
  readonly io: CommandIo;
}

async function createKey(values: KeyArguments, config: Config, io: CommandIo): Promise<number> {
  const { application, plan } = values;
  if (application === undefined || !/^[\w .:@/-]{1,100}$/.test(application)) {
    throw new UsageError(
      "--application needs a name of 1 to 100 letters, digits, spaces or .:@/-_",
    );
  }
  const environment = readEnvironmentName(values.environment, config);
  const limits = readLimits(values);
  checkPlan(plan, limits, config);
  using stores = openStores(config);
  const wanted = { application, environment, plan: plan ?? "", limits };
  const { key, text } = await issueKey(wanted, stores.keys);
  if (values.json === true) io.print(JSON.stringify({ ...describe(key), api_key: text }));
  else {
    io.print(text);
    io.report(`Key ${key.id} for application '${application}' on plan ${plan} in ${environment}.`);
    io.report("This is the only time the key is shown: keep it now. Gateways take it in a second.");
  }
  return exitCodes.ok;
}

function readEnvironmentName(wanted: string | undefined, config: Config): string {
  const names = config.environments.map(({ name }) => name);
  if (wanted === undefined && names.length === 1) return names[0] ?? "";
  if (wanted !== undefined && names.includes(wanted)) return wanted;
  throw new UsageError(`--environment must be one of: ${names.join(", ")}`);
}

function readLimits(values: KeyArguments): Limits | undefined {
  const requests = values["requests-per-minute"];
  const tokens = values["tokens-per-minute"];
  if (requests === undefined && tokens === undefined) return undefined;
  return { requestsPerMinute: readCount(requests), tokensPerMinute: readCount(tokens) };
}

function readCount(text: string | undefined): number {
  if (text !== undefined && /^[1-9][0-9]{0,11}$/.test(text)) return Number(text);
  throw new UsageError(
    "--requests-per-minute and --tokens-per-minute go together and are whole numbers above 0",
  );
}

function checkPlan(name: string | undefined, limits: Limits | undefined, config: Config): void {
  const plan = name === undefined ? undefined : config.plans.get(name);
  if (plan === undefined) {
    const names = [...config.plans.keys()].join(", ");
    throw new UsageError(`--plan must be one of: ${names}; not '${name ?? ""}'`);
  }
  if (plan.limits === undefined && limits === undefined) {
    throw new UsageError(
      `plan ${plan.name} is custom: add --requests-per-minute and --tokens-per-minute`,
    );
  }
  if (plan.limits !== undefined && limits !== undefined) {
    throw new UsageError(`plan ${plan.name} has its own limits; only custom plans take others`);
  }
}

async function listKeys(values: KeyArguments, config: Config, io: CommandIo): Promise<number> {
  using stores = openStores(config);
  const keys = await stores.keys.store.list();
  const prefixes = new Map<string, string>();
  for (const { secret } of await stores.keys.store.loadSecrets()) {
    prefixes.set(secret.keyId, `sk-slc_${secret.publicId}`);
  }
  const described = keys.map((key) => ({ ...describe(key), prefix: prefixes.get(key.id) ?? null }));
  if (values.json === true) io.print(JSON.stringify(described));
  else if (keys.length === 0) io.report("There are no keys yet.");
  else {
    const header = ["ID", "KEY", "APPLICATION", "ENVIRONMENT", "PLAN", "CREATED", "STATUS"];
    const rows = keys.map((key) => [
      key.id,
      prefixes.get(key.id) ?? "-",
      key.application,
      key.environment,
      key.plan,
      new Date(key.createdAt).toISOString().slice(0, 19),
      key.revokedAt === undefined ? "active" : "revoked",
    ]);
    io.print(formatTable(header, rows));
  }
  return exitCodes.ok;
}

async function revokeKey(action: KeyAction): Promise<number> {
  const { values, rest, config, io } = action;
  const [named, ...others] = rest;
  if (named === undefined || others.length > 0) {
    throw new UsageError("name one key: its id, its first characters (sk-slc_...), or all of it");
  }
  using stores = openStores(config);
  const { store, clock } = stores.keys;
  const id = await findKeyId(named, store);
  const isKnown = id !== undefined && (await store.revoke(id, clock.now()));
  // Not echoed: it may be a whole key.
  if (!isKnown) throw new CommandError("there is no such key; `sluice keys list` shows all");
  if (values.json === true) io.print(JSON.stringify({ id, is_revoked: true }));
  else io.report(`Key ${id} is revoked. Running gateways refuse it within a second.`);
  return exitCodes.ok;
}

/** By id, or by the public part of the API key, which is what a leak shows. */
async function findKeyId(named: string, store: KeyStore): Promise<string | undefined> {
  const [, publicId] = /^sk-slc_([0-9A-Za-z]{8})(?:_|$)/.exec(named) ?? [];
  if (publicId === undefined) return named;
  const secrets = await store.loadSecrets();
  return secrets.find(({ secret }) => secret.publicId === publicId)?.key.id;
}

function describe(key: Key): object {
  return {
    id: key.id,
    application: key.application,
    environment: key.environment,
    plan: key.plan,
    requests_per_minute: key.limits?.requestsPerMinute ?? null,
    tokens_per_minute: key.limits?.tokensPerMinute ?? null,
    created_at: new Date(key.createdAt).toISOString(),
    revoked_at: key.revokedAt === undefined ? null : new Date(key.revokedAt).toISOString(),
  };
}
