import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import { suggest } from "../../domain/suggest.ts";
import type { Platform } from "../services.ts";
import { invalidField } from "./refusals.ts";

interface WrittenName {
  readonly noun: "environment" | "model" | "plan" | "pool";
  /** What defines such names: `the configuration`. */
  readonly owner?: string;
  readonly written: string;
  readonly known: readonly string[];
}

const listedNames = 20;

const longestName = 64;

/** The message lists the known names and suggests the likely one. */
export function unknownName(param: string, name: WrittenName): GatewayError {
  const { noun, owner = "the configuration", written, known } = name;
  const isName = /^[\w.-]+$/.test(written) && written.length <= longestName;
  const problem = isName ? `${owner} has no ${noun} '${written}'` : `${owner} has no such ${noun}`;
  const names = known.slice(0, listedNames).join(", ");
  const rest = known.length > listedNames ? ", ..." : "";
  const meant = suggest(written, known);
  if (meant !== undefined) {
    return invalidField(param, `${problem}; did you mean '${meant}'? It has ${names}${rest}.`);
  }
  return invalidField(param, known.length === 0 ? problem : `${problem}; use ${names}${rest}`);
}

/** Names by which a request filters a list; undefined ones are not checked. */
interface FilterNames {
  readonly environment?: string | undefined;
  readonly plan?: string | undefined;
  readonly provisioned_pool?: string | undefined;
  readonly model?: string | undefined;
}

/**
 * Throws 400 for a filter that can match nothing. Call it only for an empty list: keys and usage
 * may still have a name that is no longer configured.
 */
export function requireKnownNames(platform: Platform, filter: FilterNames): void {
  const { environments, plans, pools } = platform;
  const aliases = environments.flatMap(({ models }) => models.map(({ alias }) => alias));
  const checked = [
    ["environment", "environment", environments.map(({ name }) => name)],
    ["plan", "plan", [...plans.keys()]],
    ["provisioned_pool", "pool", [...pools.keys()]],
    ["model", "model", [...new Set(aliases)]],
  ] as const;
  for (const [param, noun, known] of checked) {
    const written = filter[param];
    if (written === undefined || known.includes(written)) continue;
    throw unknownName(param, { noun, written, known });
  }
}
