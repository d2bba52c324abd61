import { readFileSync } from "node:fs";
import { ensureApplication, issueKey, type NewKey } from "./issue-key.ts";
import { formatProblems, parseConfig } from "../../src/config/load.ts";
import { openDatabaseStores } from "../../src/process/wiring/database-stores.ts";
import { platformOf } from "../../src/process/control/admin-plane.ts";
import { systemClock as clock } from "../../src/domain/clock.ts";
import { Installation } from "../../src/store/installation/installation.ts";
import { unlimited } from "./gateway.ts";

export type KeyPlan = Pick<NewKey, "plan" | "limits">;

const unheld: KeyPlan = { plan: "enterprise", limits: unlimited };

/**
 * A key in the database of a gateway with this configuration; without effective limits unless a
 * plan is named.
 */
export async function createKeyOf(configPath: string, plan?: KeyPlan): Promise<string> {
  const [key] = await createKeysOf(configPath, 1, plan);
  return key?.text ?? "";
}

interface ProcessKey {
  readonly id: string;
  readonly text: string;
}

/** Several keys of one account. */
export function createKeysOf(
  configPath: string,
  count: number,
  plan?: KeyPlan,
): Promise<readonly ProcessKey[]> {
  const accounts = Array.from({ length: count }, () => "process");
  return createKeysOfAccounts(configPath, accounts, plan);
}

/** A key for each name of an account. */
export async function createKeysOfAccounts(
  configPath: string,
  accounts: readonly string[],
  plan = unheld,
): Promise<readonly ProcessKey[]> {
  const parsed = parseConfig(readFileSync(configPath, "utf8"), { name: configPath, env: {} });
  if (!parsed.ok) throw new Error(formatProblems(configPath, parsed.problems));
  const { config } = parsed;
  const random = (target: Uint8Array): Uint8Array => crypto.getRandomValues(target);
  const owner = new Installation(config, { random, clock });
  const stores = openDatabaseStores(config.storage, clock, { owner, peppers: owner.peppers });
  await using _ = { [Symbol.asyncDispose]: () => stores.connection.close() };
  const services = {
    store: stores.control,
    clock,
    random,
    peppers: owner.peppers,
    platform: () => platformOf(config),
  };
  const environment = config.environments[0]?.name ?? "";
  const keys: ProcessKey[] = [];
  for (const account of accounts) {
    const names = { account, application: "process", environment };
    const { id: applicationId } = await ensureApplication(services, names);
    const { key, text } = await issueKey(services, { applicationId, ...plan });
    keys.push({ id: key.id, text });
  }
  return keys;
}
