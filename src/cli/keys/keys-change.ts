import type { Arguments } from "../arguments.ts";
import { definedFields, idempotencyOption } from "../resources/change-fields.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { UsageError, type CommandIo } from "../command.ts";
import { changeEntity } from "../resources/entity-verbs.ts";
import { findApplication } from "../resources/find-entity.ts";
import { keyEntity } from "./keys-list.ts";
import { limitOptions, readLimits } from "../resources/limit-options.ts";
import {
  cellOf,
  readPart,
  readRecord,
  readText,
  type ReplyRecord,
} from "../output/reply-fields.ts";
import { showRecord } from "../output/show-reply.ts";
import { defineVerb, type VerbCall } from "../verb.ts";

const fieldOptions = {
  plan: { type: "string", value: "PLAN", about: "a plan of the configuration" },
  ...limitOptions("this key's own limits, for custom plans"),
  "provisioned-units": {
    type: "string",
    value: "N",
    about: "units of provisioned throughput; 0: none",
  },
  "provisioned-pool": {
    type: "string",
    value: "NAME",
    about: "pool that they are of; not needed when there is one",
  },
  models: { type: "string", value: "A,B", about: "the only models it may name; `all`: no limit" },
  networks: {
    type: "string",
    value: "10.0.0.0/8,...",
    about: "the only networks it may be used from; `any`: no limit",
  },
  expires: { type: "string", value: "30d|DATE", about: "when it stops working; `never`" },
  note: { type: "string", value: "TEXT", about: "what it is for" },
} as const;

export const createKeyVerb = defineVerb({
  name: "create",
  summary: "issue a key to an application",
  options: {
    application: { type: "string", value: "APPLICATION", about: "its id, or its name" },
    account: { type: "string", value: "ACCOUNT", about: "when several applications have the name" },
    environment: {
      type: "string",
      value: "NAME",
      about: "when several applications have the name",
    },
    ...fieldOptions,
    ...idempotencyOption,
  },
  examples: [
    "keys create --application search --plan standard",
    "keys create --application search --plan standard --models alpha-sonnet-4 --expires 90d",
    "keys create --application app_0123456789abcdef --plan enterprise " +
      "--requests-per-minute 5000 --tokens-per-minute 10000000",
  ],
  async run(call) {
    const { args, client, io } = call;
    args.none();
    const named = args.required("application");
    const fields = { plan: args.required("plan"), ...readFields(args, io) };
    const application = await findApplication(client, named, {
      account: args.text("account"),
      environment: args.text("environment"),
    });
    const body = { application_id: readText(application, "id"), ...fields };
    const idempotencyKey = args.text("idempotency-key");
    const answer = await client.request("POST", "/keys", { body, idempotencyKey });
    showNewSecret(call, answer);
    if (!call.isJson) {
      const key = readPart(readRecord(answer), "key") ?? {};
      io.report(
        `Key ${cellOf(key, "id")} for application '${cellOf(key, "application")}' ` +
          `on plan ${cellOf(key, "plan")} in ${cellOf(key, "environment")}.`,
      );
      io.report("This is the only time it is shown: keep it now. Gateways take it in a second.");
      warnOfStatus(call, key);
    }
    return exitCodes.ok;
  },
});

/** A new secret alone on standard output, so that it can be piped to where it belongs. */
export function showNewSecret(
  { io, isJson }: Pick<VerbCall, "io" | "isJson">,
  answer: unknown,
): void {
  io.print(isJson ? JSON.stringify(answer) : readText(readRecord(answer), "api_key"));
}

/** A new secret that no gateway takes would be rolled out in vain. */
export function warnOfStatus({ io }: Pick<VerbCall, "io">, key: ReplyRecord): void {
  const { status } = key;
  if (typeof status !== "string" || status === "active") return;
  const reason = statusReasons[status] ?? `its status is ${cellOf(key, "status")}`;
  io.report(`Warning: the key does not work now: ${reason}.`);
}

const statusReasons: Readonly<Record<string, string>> = {
  disabled: "it is disabled (`keys enable`)",
  application_disabled: "its application is disabled (`applications enable`)",
  account_disabled: "its account is disabled (`accounts enable`)",
  expired: "it has expired (`keys update --expires`)",
  revoked: "it is revoked",
  no_secret: "it has no live secret (`keys rotate`)",
};

export const updateKeyVerb = defineVerb({
  name: "update",
  takes: keyEntity.takes,
  summary: "change the plan, limits, units, models, networks, expiry or note",
  options: {
    ...fieldOptions,
    "plan-limits": { type: "boolean", about: "no limits of its own any more, but the plan's" },
  },
  examples: [
    "keys update sk-slc_1a2B3c4D --networks 10.0.0.0/8,192.0.2.7",
    "keys update key_0123456789abcdef --plan pro --plan-limits --expires never",
    "keys update key_0123456789abcdef --provisioned-units 20 --provisioned-pool main",
  ],
  async run(call) {
    const { args, io } = call;
    const limits = args.flag("plan-limits") ? { limits: null } : {};
    const fields = { ...readFields(args, io), ...limits };
    if (Object.keys(fields).length === 0) throw new UsageError("say what to change");
    const found = await keyEntity.find(call);
    showRecord(call, await changeEntity(call, { path: keyEntity.path, found, fields }));
    return exitCodes.ok;
  },
});

function readFields(
  args: Arguments<keyof typeof fieldOptions>,
  io: CommandIo,
): Readonly<Record<string, unknown>> {
  return definedFields({
    plan: args.text("plan"),
    limits: readLimits(args),
    provisioned_units: args.count("provisioned-units"),
    provisioned_pool: args.text("provisioned-pool"),
    allowed_models: args.text("models") === "all" ? null : args.list("models"),
    allowed_networks: args.text("networks") === "any" ? null : args.list("networks"),
    expires_at: args.text("expires") === "never" ? null : args.time("expires", io.clock.now()),
    note: args.text("note"),
  });
}
