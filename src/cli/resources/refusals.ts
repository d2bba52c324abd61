import { exitCodes } from "../../process/exit-codes.ts";
import type { Command } from "../command.ts";
import { findAccountId } from "./find-entity.ts";
import { readRecords } from "../output/reply-fields.ts";
import { createSingleCommand } from "../resource-command.ts";
import { formatRecords } from "../output/show-reply.ts";
import { findKeyId } from "../usage/usage-filter.ts";
import { defineVerb } from "../verb.ts";

const columns = [
  { title: "AT", of: "at" },
  { title: "ID", of: "id" },
  { title: "STATUS", of: "status" },
  { title: "RULE", of: "rule" },
  { title: "APPLICATION", of: "application" },
  { title: "MODEL", of: "model" },
  { title: "SUMMARY", of: "summary" },
];

const refusalsVerb = defineVerb({
  name: "refusals",
  summary: "the last requests that the gateway refused itself",
  options: {
    key: { type: "string", value: "KEY", about: "only of this key" },
    account: { type: "string", value: "ACCOUNT", about: "only of this account" },
    limit: { type: "string", value: "N", about: "most entries to show (default 50)" },
  },
  examples: ["refusals", "refusals --key sk-slc_1a2B3c4D"],
  async run({ args, client, io, isJson }) {
    args.none();
    const query = {
      limit: args.count("limit"),
      key_id: await findKeyId(client, args.text("key")),
      account_id: await findAccountId(client, args.text("account")),
    };
    const answer = await client.request("GET", "/refusals", { query });
    const refusals = readRecords(answer, "data");
    if (isJson) io.print(JSON.stringify(answer));
    else if (refusals.length > 0) io.print(formatRecords(columns, refusals));
    else if (client.isOffline) io.report("Only a running gateway remembers what it refused.");
    else io.report("Nothing was refused lately.");
    return exitCodes.ok;
  },
});

export const refusalsCommand: Command = createSingleCommand(
  refusalsVerb,
  `Lists what the gateway refused by its own rules, newest first: it remembers the last ones of each
key while it runs. \`explain ID\` tells all about one.`,
);
