import { exitCodes } from "../../process/program.ts";
import { readRecord, readRecords, readText } from "../output/reply-fields.ts";
import { formatRecords } from "../output/show-reply.ts";
import { costText } from "../output/usd.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";
import type { VerbCall } from "../verbs/verb.ts";
import { findEntity } from "../verbs/entities.ts";
import { readFields } from "../verbs/run-verb.ts";
import { textsOf } from "../client/admin-client.ts";

export const statement: ResourceSpec = {
  name: "statement",
  example: '"Example Shop"',
  about:
    "What the calls of an account cost in a month of its time zone, by model and class of tokens. The " +
    "lines add up to the total, exactly.",
  verbs: [
    {
      name: "show",
      isDefault: true,
      operation: "getStatement",
      summary: "Show what an account costs in a month",
      run: showStatement,
      examples: [
        'statement "Example Shop" --month 2026-11',
        'statement "Example Shop" --month 2026-11 --format csv > november.csv',
      ],
    },
  ],
};

async function showStatement(call: VerbCall): Promise<number> {
  const { client, io, isJson, verb, argument: named = "" } = call;
  const account =
    verb.entity && (await findEntity(client, { entity: verb.entity, named, owners: {} }));
  const path = `/accounts/${readText(account ?? {}, "id")}/statement`;
  const query = textsOf(await readFields(call));
  if (query["format"] === "csv" && !isJson) {
    for await (const bytes of client.stream(path, query)) {
      if (!(await io.write(bytes))) return exitCodes.ok;
    }
    return exitCodes.ok;
  }
  const answer = readRecord(await client.request("GET", path, { query }));
  if (isJson) {
    io.print(JSON.stringify(answer));
    return exitCodes.ok;
  }
  const unpriced = Number(answer["unpriced_calls"]);
  const columns = [
    { title: "MODEL", of: "model" },
    { title: "ITEM", of: "item" },
    { title: "TOKENS", of: "tokens" },
    { title: "USD", of: ({ cost_usd: cost }: { readonly cost_usd?: unknown }) => costText(cost) },
  ];
  const sum = `${unpriced > 0 ? ">= " : ""}${readText(answer, "total_usd")}`;
  const total = { model: "TOTAL", item: "", tokens: "", cost_usd: sum };
  io.print(formatRecords(columns, [...readRecords(answer, "lines"), total]));
  if (unpriced > 0) {
    io.report(`${unpriced} calls have no price, so the total is the least that it can be.`);
  }
  return exitCodes.ok;
}
