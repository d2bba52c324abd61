import { exitCodes } from "../../process/exit-codes.ts";
import { CommandError, UsageError, type Command } from "../command.ts";
import {
  changeEntity,
  deleteVerb,
  showVerb,
  switchVerb,
  titleWithName,
  type Entity,
} from "./entity-verbs.ts";
import { findAccount, pathOf } from "./find-entity.ts";
import { definedFields, idempotencyOption } from "./change-fields.ts";
import { limitOptions, readLimits } from "./limit-options.ts";
import { readText } from "../output/reply-fields.ts";
import { createResourceCommand } from "../resource-command.ts";
import { pageOptions, showList, showRecord } from "../output/show-reply.ts";
import { defineVerb } from "../verb.ts";

const takes = "ACCOUNT";

const account: Entity<never> = {
  noun: "account",
  path: "/accounts",
  takes,
  options: {},
  example: '"Example Shop"',
  find: ({ client, args }) => findAccount(client, args.one("account by its id or name")),
  title: titleWithName("Account"),
};

const columns = [
  { title: "ID", of: "id" },
  { title: "NAME", of: "name" },
  { title: "PLANS", of: "plans" },
  { title: "MAX KEYS", of: "max_keys" },
  { title: "CREATED", of: "created_at" },
  { title: "DISABLED", of: "disabled_at" },
  { title: "NOTE", of: "note" },
];

const fieldOptions = {
  plans: {
    type: "string",
    value: "A,B",
    about: "plans its account holders may issue keys on (default: none)",
  },
  "max-keys": { type: "string", value: "N", about: "for account holders: most keys not revoked" },
  ...limitOptions("what all its keys may use together"),
  note: { type: "string", value: "TEXT", about: "for operators" },
} as const;

const withoutPlans =
  "Its account holders can issue no keys until it has plans: `accounts update ACCOUNT --plans A,B`.";

const createVerb = defineVerb({
  name: "create",
  takes: "NAME",
  summary: "make an account, which owns applications and keys",
  options: { ...fieldOptions, ...idempotencyOption },
  examples: [
    'accounts create "Example Shop"',
    'accounts create "Example Shop" --plans pilot,standard --max-keys 20',
  ],
  async run(call) {
    const { args, client } = call;
    const body = definedFields({
      name: args.one("name for the account"),
      plans: args.list("plans"),
      max_keys: args.count("max-keys"),
      limits: readLimits(args),
      note: args.text("note"),
    });
    const idempotencyKey = args.text("idempotency-key");
    const made = await client.request("POST", "/accounts", { body, idempotencyKey });
    showRecord(call, made);
    if (args.list("plans") === undefined) call.io.report(withoutPlans);
    return exitCodes.ok;
  },
});

const listVerb = defineVerb({
  name: "list",
  summary: "list accounts",
  options: { name: { type: "string", value: "NAME", about: "only this one" }, ...pageOptions },
  examples: ["accounts list", "accounts list --json --limit 500"],
  run(call) {
    call.args.none();
    const query = { name: call.args.text("name") };
    const whenEmpty = "There are no accounts.";
    return showList(call, { path: "/accounts", query, columns, whenEmpty });
  },
});

const updateVerb = defineVerb({
  name: "update",
  takes,
  summary: "change the name, plans, number of keys, limits or note",
  options: {
    name: { type: "string", value: "NAME", about: "a new name" },
    ...fieldOptions,
    "no-limits": { type: "boolean", about: "its keys have no limit together any more" },
  },
  examples: [
    'accounts update "Example Shop" --plans standard,pro --max-keys 50',
    'accounts update "Example Shop" --requests-per-minute 2000 --tokens-per-minute 3000000',
  ],
  async run(call) {
    const { args } = call;
    const fields = definedFields({
      name: args.text("name"),
      plans: args.list("plans"),
      max_keys: args.count("max-keys"),
      limits: limitsOf(args.flag("no-limits"), readLimits(args)),
      note: args.text("note"),
    });
    if (Object.keys(fields).length === 0) throw new UsageError("say what to change");
    const found = await account.find(call);
    showRecord(call, await changeEntity(call, { path: account.path, found, fields }));
    return exitCodes.ok;
  },
});

function limitsOf(isNone: boolean, limits: object | undefined): object | null | undefined {
  if (!isNone) return limits;
  if (limits !== undefined) throw new UsageError("--no-limits and other limits exclude each other");
  return null;
}

const eraseVerb = defineVerb({
  name: "erase",
  takes,
  summary: "remove an account with its users, applications, keys and usage, for good",
  options: {
    confirm: { type: "string", value: "NAME", about: "the name of the account, once more" },
  },
  examples: ['accounts erase acct_0123456789abcdef --confirm "Example Shop"'],
  async run(call) {
    const { args, client, io, isJson } = call;
    const confirm = args.required("confirm");
    const found = await account.find(call);
    if (readText(found, "name") !== confirm) {
      throw new CommandError(`nothing was erased: the account's name is not '${confirm}'`);
    }
    const answer = await client.request("POST", `${pathOf(account.path, found)}/erase`, {
      body: { confirm },
    });
    if (isJson) showRecord(call, answer);
    else io.report(`${account.title(found)} is erased.`);
    return exitCodes.ok;
  },
});

export const accountsCommand: Command = createResourceCommand({
  name: "accounts",
  summary: "customers: who owns applications and keys",
  about: "An account owns applications and their keys; its account holders manage them.",
  verbs: [
    createVerb,
    listVerb,
    showVerb(account),
    updateVerb,
    switchVerb(account, {
      name: "disable",
      summary: "stop all keys of an account",
      effect: "Gateways refuse its keys within a second.",
    }),
    switchVerb(account, {
      name: "enable",
      summary: "let a disabled account's keys work again",
      effect: "Gateways take its keys again within a second.",
    }),
    deleteVerb(account, {
      name: "delete",
      summary: "remove an account that owns nothing any more",
      effect: "",
    }),
    eraseVerb,
  ],
});
