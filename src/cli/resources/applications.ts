import { definedFields, idempotencyOption } from "./change-fields.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { UsageError, type Command } from "../command.ts";
import {
  changeEntity,
  deleteVerb,
  showVerb,
  switchVerb,
  titleWithName,
  type Entity,
} from "./entity-verbs.ts";
import { findAccountId, findApplication } from "./find-entity.ts";
import { createResourceCommand } from "../resource-command.ts";
import { pageOptions, showList, showRecord } from "../output/show-reply.ts";
import { defineVerb } from "../verb.ts";

const takes = "APPLICATION";

const placeOptions = {
  account: { type: "string", value: "ACCOUNT", about: "id or name of its account" },
  environment: { type: "string", value: "NAME", about: "its environment" },
} as const;

const application: Entity<keyof typeof placeOptions> = {
  noun: "application",
  path: "/applications",
  takes,
  options: placeOptions,
  example: "search --environment production",
  find: ({ client, args }) =>
    findApplication(client, args.one("application by its id or name"), {
      account: args.text("account"),
      environment: args.text("environment"),
    }),
  title: titleWithName("Application"),
};

const columns = [
  { title: "ID", of: "id" },
  { title: "NAME", of: "name" },
  { title: "ENVIRONMENT", of: "environment" },
  { title: "ACCOUNT", of: "account_id" },
  { title: "CREATED", of: "created_at" },
  { title: "DISABLED", of: "disabled_at" },
  { title: "NOTE", of: "note" },
];

const createVerb = defineVerb({
  name: "create",
  takes: "NAME",
  summary: "make an application of an account in an environment",
  options: {
    ...placeOptions,
    note: { type: "string", value: "TEXT", about: "for operators and account holders" },
    ...idempotencyOption,
  },
  examples: ['applications create search --account "Example Shop" --environment production'],
  async run(call) {
    const { args, client } = call;
    const name = args.one("name for the application");
    const environment = args.required("environment");
    const account_id = await findAccountId(client, args.text("account"));
    const body = definedFields({ name, environment, account_id, note: args.text("note") });
    const idempotencyKey = args.text("idempotency-key");
    showRecord(call, await client.request("POST", "/applications", { body, idempotencyKey }));
    return exitCodes.ok;
  },
});

const listVerb = defineVerb({
  name: "list",
  summary: "list applications",
  options: {
    ...placeOptions,
    name: { type: "string", value: "NAME", about: "only those of this name" },
    ...pageOptions,
  },
  examples: ['applications list --account "Example Shop"'],
  async run(call) {
    const { args, client } = call;
    args.none();
    const query = {
      name: args.text("name"),
      environment: args.text("environment"),
      account_id: await findAccountId(client, args.text("account")),
    };
    const whenEmpty = "There are no such applications.";
    return showList(call, { path: "/applications", query, columns, whenEmpty });
  },
});

const updateVerb = defineVerb({
  name: "update",
  takes,
  summary: "change the name or the note",
  options: {
    ...placeOptions,
    name: { type: "string", value: "NAME", about: "a new name" },
    note: { type: "string", value: "TEXT", about: "a new note" },
  },
  examples: ["applications update app_0123456789abcdef --name search-service"],
  async run(call) {
    const { args } = call;
    const fields = definedFields({ name: args.text("name"), note: args.text("note") });
    if (Object.keys(fields).length === 0) throw new UsageError("say what to change");
    const found = await application.find(call);
    showRecord(call, await changeEntity(call, { path: application.path, found, fields }));
    return exitCodes.ok;
  },
});

export const applicationsCommand: Command = createResourceCommand({
  name: "applications",
  summary: "programs that keys are issued to",
  about: "An application belongs to an account and an environment; its name is unique there.",
  verbs: [
    createVerb,
    listVerb,
    showVerb(application),
    updateVerb,
    switchVerb(application, {
      name: "disable",
      summary: "stop all keys of an application",
      effect: "Gateways refuse its keys within a second.",
    }),
    switchVerb(application, {
      name: "enable",
      summary: "let a disabled application's keys work again",
      effect: "Gateways take its keys again within a second.",
    }),
    deleteVerb(application, {
      name: "delete",
      summary: "remove an application whose keys are all revoked",
      effect: "",
    }),
  ],
});
