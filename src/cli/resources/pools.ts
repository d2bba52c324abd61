import { exitCodes } from "../../process/exit-codes.ts";
import type { Command } from "../command.ts";
import { cellOf, readRecords } from "../output/reply-fields.ts";
import { createResourceCommand } from "../resource-command.ts";
import { formatRecords, showRecord } from "../output/show-reply.ts";
import { defineVerb } from "../verb.ts";

const columns = [
  { title: "NAME", of: "name" },
  { title: "KIND", of: "kind" },
  { title: "TOKENS/MIN", of: "tokens_per_minute" },
  { title: "NEVER SOLD", of: "floor_tokens_per_minute" },
  { title: "UNIT", of: "unit_tokens_per_minute" },
  { title: "SOLD", of: "sold_units" },
  { title: "HELD", of: "held_tokens_per_minute" },
  { title: "LEFT", of: "units_left" },
  { title: "STATUS", of: "status" },
];

const listVerb = defineVerb({
  name: "list",
  summary: "list pools: capacity, units sold and units left",
  examples: ["pools list"],
  async run({ args, client, io, isJson }) {
    args.none();
    const answer = await client.request("GET", "/pools");
    const pools = readRecords(answer, "data");
    if (isJson) io.print(JSON.stringify(answer));
    else if (pools.length > 0) io.print(formatRecords(columns, pools));
    else io.report("There are no pools: the configuration's section `pools` makes them.");
    if (!isJson) for (const pool of pools) warnOf(pool, io.report);
    return exitCodes.ok;
  },
});

const showVerb = defineVerb({
  name: "show",
  takes: "NAME",
  summary: "show all of one pool, and the keys that have units of it",
  examples: ["pools show main"],
  async run(call) {
    const { args, client } = call;
    const name = args.one("pool by its name");
    showRecord(call, await client.request("GET", `/pools/${encodeURIComponent(name)}`));
    return exitCodes.ok;
  },
});

export const poolsCommand: Command = createResourceCommand({
  name: "pools",
  summary: "capacity for provisioned throughput: what is sold, and what is left",
  about: `Keys buy units of a pool (\`keys update KEY --provisioned-units N --provisioned-pool NAME\`), which
guarantee them tokens per minute. Pools are made in the configuration. Without a verb: the list.

In the table, UNIT is what one unit guarantees, NEVER SOLD what stays for calls without a guarantee,
HELD what the pool holds back for the units sold, and LEFT the units that can still be sold.`,
  verbs: [listVerb, showVerb],
  defaultVerb: "list",
});

/** A guarantee that may not be kept is worth a line of its own. */
function warnOf(pool: Readonly<Record<string, unknown>>, report: (line: string) => void): void {
  const reason = warnings[String(pool["status"])];
  if (reason !== undefined) report(`Warning: pool ${cellOf(pool, "name")} ${reason}.`);
}

const warnings: Readonly<Record<string, string>> = {
  oversold: "is smaller than what is sold of it: its guarantees may not be kept",
  not_configured: "is not configured any more: units of it guarantee nothing",
};
