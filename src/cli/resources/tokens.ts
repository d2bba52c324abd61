import { definedFields, idempotencyOption } from "./change-fields.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { UsageError, type Command } from "../command.ts";
import { findUser } from "./find-entity.ts";
import { cellOf, readPart, readRecord, readText } from "../output/reply-fields.ts";
import { createResourceCommand } from "../resource-command.ts";
import { pageOptions, showList, showRecord } from "../output/show-reply.ts";
import { defineVerb } from "../verb.ts";

const columns = [
  { title: "ID", of: "id" },
  { title: "NAME", of: "name" },
  { title: "TOKEN", of: "hint" },
  { title: "USER", of: "user" },
  { title: "SCOPES", of: "scopes" },
  { title: "EXPIRES", of: "expires_at" },
  { title: "LAST USED", of: "last_used_at" },
  { title: "REVOKED", of: "revoked_at" },
];

const createVerb = defineVerb({
  name: "create",
  takes: "NAME",
  summary: "make a management token, with which scripts act as its user",
  options: {
    scopes: { type: "string", value: "read,write", about: "what it may do (default: both)" },
    "expires-in": {
      type: "string",
      value: "90d",
      about: "how long it works (default 90d, at most 365d)",
    },
    user: {
      type: "string",
      value: "USER",
      about: "whose it is, by email or id (default: who is signed in)",
    },
    ...idempotencyOption,
  },
  examples: ["tokens create deployment --user ada@example.com --scopes read --expires-in 30d"],
  async run(call) {
    const { args, client, io } = call;
    const named = args.text("user");
    const user = named === undefined ? undefined : await findUser(client, named);
    const body = definedFields({
      user_id: user === undefined ? undefined : readText(user, "id"),
      name: args.one("name for the token"),
      scopes: args.list("scopes"),
      expires_in_days: readDays(args.durationMs("expires-in")),
    });
    const idempotencyKey = args.text("idempotency-key");
    const answer = readRecord(await client.request("POST", "/tokens", { body, idempotencyKey }));
    if (call.isJson) showRecord(call, answer);
    else {
      const token = readPart(answer, "token") ?? {};
      io.print(readText(answer, "secret"));
      io.report(
        `Token ${cellOf(token, "id")} of ${cellOf(token, "user")}, until ${cellOf(token, "expires_at")}.`,
      );
      io.report("This is the only time it is shown: keep it now.");
    }
    return exitCodes.ok;
  },
});

function readDays(durationMs: number | undefined): number | undefined {
  if (durationMs === undefined) return undefined;
  const days = durationMs / 86_400_000;
  if (Number.isInteger(days) && days >= 1 && days <= 365) return days;
  throw new UsageError("--expires-in takes whole days, from 1d to 365d");
}

const listVerb = defineVerb({
  name: "list",
  summary: "list management tokens",
  options: { user: { type: "string", value: "USER", about: "only of this user" }, ...pageOptions },
  examples: ["tokens list", "tokens list --user ada@example.com"],
  async run(call) {
    const { args, client } = call;
    args.none();
    const named = args.text("user");
    const user = named === undefined ? undefined : await findUser(client, named);
    const query = { user_id: user === undefined ? undefined : readText(user, "id") };
    const whenEmpty = "There are no such tokens.";
    return showList(call, { path: "/tokens", query, columns, whenEmpty });
  },
});

const revokeVerb = defineVerb({
  name: "revoke",
  takes: "TOKEN",
  summary: "end a management token for good",
  examples: ["tokens revoke tok_0123456789abcdef"],
  async run(call) {
    const { args, client, io } = call;
    const id = args.one("token by its id");
    // What is no id may be a whole token and is not sent around.
    if (!/^tok_[0-9A-Za-z]+$/.test(id)) throw new UsageError("name a token by its id (tok_...)");
    const answer = readRecord(await client.request("DELETE", `/tokens/${id}`));
    if (call.isJson) showRecord(call, answer);
    else io.report(`Token ${readText(answer, "id")} '${cellOf(answer, "name")}' is revoked.`);
    return exitCodes.ok;
  },
});

export const tokensCommand: Command = createResourceCommand({
  name: "tokens",
  summary: "management tokens, which scripts sign in with",
  about: `A management token acts as its user, within its scopes, until it expires. Put it into
SLUICE_ADMIN_TOKEN or a file for --token-file.`,
  verbs: [createVerb, listVerb, revokeVerb],
});
