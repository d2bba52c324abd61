import { UsageError } from "../command.ts";
import type { Entity } from "../resources/entity-verbs.ts";
import { findAccountId, findApplicationId, findKey } from "../resources/find-entity.ts";
import { readRecords, readText, type ReplyRecord } from "../output/reply-fields.ts";
import { pageOptions, showList } from "../output/show-reply.ts";
import { defineVerb } from "../verb.ts";

export const keyEntity: Entity<never> = {
  noun: "key",
  path: "/keys",
  takes: "KEY",
  options: {},
  example: "key_0123456789abcdef",
  find: ({ client, args }) => findKey(client, args.one("key by its id or first characters")),
  title: titleOfKey,
};

export function titleOfKey(key: ReplyRecord): string {
  return `Key ${readText(key, "id")} of application '${readText(key, "application")}'`;
}

const columns = [
  { title: "ID", of: "id" },
  { title: "SECRETS", of: formatSecrets },
  { title: "APPLICATION", of: "application" },
  { title: "ENVIRONMENT", of: "environment" },
  { title: "PLAN", of: "plan" },
  { title: "STATUS", of: "status" },
  { title: "CREATED", of: "created_at" },
  { title: "EXPIRES", of: "expires_at" },
];

export const listKeysVerb = defineVerb({
  name: "list",
  summary: "list keys",
  options: {
    account: { type: "string", value: "ACCOUNT", about: "only of this account" },
    application: { type: "string", value: "APPLICATION", about: "only of this application" },
    environment: { type: "string", value: "NAME", about: "only of this environment" },
    plan: { type: "string", value: "PLAN", about: "only on this plan" },
    "provisioned-pool": {
      type: "string",
      value: "NAME",
      about: "only with units of this pool",
    },
    status: { type: "string", value: "active|inactive", about: "only those that work, or do not" },
    ...pageOptions,
  },
  examples: ["keys list", "keys list --application search --status active"],
  async run(call) {
    const { args, client } = call;
    args.none();
    const status = args.text("status");
    if (status !== undefined && status !== "active" && status !== "inactive") {
      throw new UsageError("--status takes active or inactive");
    }
    const [account, environment] = [args.text("account"), args.text("environment")];
    const query = {
      status,
      environment,
      plan: args.text("plan"),
      provisioned_pool: args.text("provisioned-pool"),
      account_id: await findAccountId(client, account),
      application_id: await findApplicationId(client, args.text("application"), {
        account,
        environment,
      }),
    };
    return showList(call, { path: "/keys", query, columns, whenEmpty: "There are no such keys." });
  },
});

/** Those that work; the others are seen with `keys show`. */
function formatSecrets(key: ReplyRecord): string {
  const live = readRecords(key, "secrets").filter(({ status }) => status === "live");
  return live.length === 0 ? "-" : live.map((secret) => readText(secret, "hint")).join(" ");
}
