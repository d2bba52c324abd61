import type { AdminClient, AdminQuery } from "../client/admin-client.ts";
import type { Arguments } from "../arguments.ts";
import type { CommandIo } from "../command.ts";
import {
  findAccountId,
  findApplicationId,
  findKey,
  readKeyName,
} from "../resources/find-entity.ts";
import { readText } from "../output/reply-fields.ts";
import { readTimeRange, timeOptions } from "./time-range.ts";

/** Which calls a report is about. */
export const usageFilterOptions = {
  ...timeOptions,
  environment: { type: "string", value: "NAME", about: "only of this environment" },
  account: { type: "string", value: "ACCOUNT", about: "only of this account" },
  application: { type: "string", value: "APPLICATION", about: "only of this application" },
  key: { type: "string", value: "KEY", about: "only of this key" },
  model: { type: "string", value: "ALIAS", about: "only of this model" },
  target: { type: "string", value: "TARGET", about: "only those that this target served" },
  status: { type: "string", value: "CODE", about: "only those with this HTTP status" },
  class: { type: "string", value: "CLASS", about: "provisioned, spillover or on-demand" },
} as const;

export async function readUsageFilter(
  args: Arguments<keyof typeof usageFilterOptions>,
  client: AdminClient,
  io: CommandIo,
): Promise<AdminQuery> {
  const range = readTimeRange(args, io);
  const [account, environment] = [args.text("account"), args.text("environment")];
  const places = { account, environment };
  return {
    ...range,
    environment,
    account_id: await findAccountId(client, account),
    application_id: await findApplicationId(client, args.text("application"), places),
    key_id: await findKeyId(client, args.text("key")),
    model: args.text("model"),
    target: args.text("target"),
    status: args.count("status"),
    class: args.text("class"),
  };
}

/** The id of a key that is named by either of its names. */
export async function findKeyId(
  client: AdminClient,
  named: string | undefined,
): Promise<string | undefined> {
  if (named === undefined) return undefined;
  const name = readKeyName(named);
  return name.startsWith("key_") ? name : readText(await findKey(client, name), "id");
}
