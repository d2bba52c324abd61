import type { AdminQuery } from "../client/admin-client.ts";
import type { Arguments } from "../arguments.ts";
import { pageOptions, showList } from "../output/show-reply.ts";
import { readUsageFilter, usageFilterOptions } from "./usage-filter.ts";
import { defineVerb } from "../verb.ts";

const columns = [
  { title: "AT", of: "started_at" },
  { title: "ID", of: "id" },
  { title: "APPLICATION", of: "application" },
  { title: "MODEL", of: "model" },
  { title: "TARGET", of: "target" },
  { title: "OUTCOME", of: "outcome" },
  { title: "STATUS", of: "status" },
  { title: "INPUT", of: "input_tokens" },
  { title: "OUTPUT", of: "output_tokens" },
  { title: "COUNT", of: "usage_source" },
  { title: "MS", of: "duration_ms" },
];

/** What only single calls can be asked for by. */
export const callFilterOptions = {
  outcome: {
    type: "string",
    value: "OUTCOME",
    about: "completed, failed, abandoned or interrupted",
  },
  "billed-twice": {
    type: "boolean",
    about: "only calls that a provider may bill twice",
  },
} as const;

export function readCallFilter(args: Arguments<keyof typeof callFilterOptions>): AdminQuery {
  return {
    outcome: args.text("outcome"),
    may_be_billed_twice: args.flag("billed-twice") ? "true" : undefined,
  };
}

export const usageCallsVerb = defineVerb({
  name: "calls",
  summary: "list single calls, newest first",
  options: { ...usageFilterOptions, ...callFilterOptions, ...pageOptions },
  examples: ["usage calls --application search --outcome failed --since 1h"],
  async run(call) {
    const { args, client, io } = call;
    args.none();
    const filter = await readUsageFilter(args, client, io);
    const query = { ...filter, ...readCallFilter(args) };
    const whenEmpty = "There were no such calls.";
    return showList(call, { path: "/usage/calls", query, columns, whenEmpty });
  },
});
