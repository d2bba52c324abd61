import { exitCodes } from "../../process/exit-codes.ts";
import { CommandError } from "../command.ts";
import { findKeys } from "./find-keys.ts";
import { readChunks } from "../read-input.ts";
import { readRecords, type ReplyRecord } from "../output/reply-fields.ts";
import { formatRecords } from "../output/show-reply.ts";
import { defineVerb } from "../verb.ts";

/** Of the admin API, in one request. */
const batchSize = 1000;

const columns = [
  { title: "SECRET", of: "hint" },
  { title: "KEY", of: "key_id" },
  { title: "APPLICATION", of: "application" },
  { title: "OUTCOME", of: "outcome" },
];

export const checkLeakVerb = defineVerb({
  name: "check-leak",
  takes: "[FILE]",
  summary: "find keys in a text and end the secrets that work",
  options: {
    keep: { type: "boolean", about: "only tell; end nothing" },
  },
  examples: ["keys check-leak paste.txt --keep", "git log -p | keys check-leak"],
  async run({ args, client, io, isJson }) {
    const [file] = args.positionals;
    if (file !== undefined && file !== "-") args.one("file");
    const texts = await findKeys(readChunks(file === "-" ? undefined : file, io));
    if (texts.length === 0) throw new CommandError("no text in it has the form of a key");
    const found: ReplyRecord[] = [];
    for (let start = 0; start < texts.length; start += batchSize) {
      const body = { api_keys: texts.slice(start, start + batchSize), disable: !args.flag("keep") };
      found.push(...readRecords(await client.request("POST", "/leaks", { body }), "data"));
    }
    io.print(isJson ? JSON.stringify({ data: found }) : formatRecords(columns, found));
    return exitCodes.ok;
  },
});
