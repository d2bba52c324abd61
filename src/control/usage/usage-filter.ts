import type { z } from "zod";
import type { callQuerySchema } from "../contract/usage.ts";
import type { Principal } from "../../domain/principal.ts";
import {
  type GroupDimension,
  type UsageDimension,
  usageDimensions,
} from "../../domain/usage/usage.ts";
import type { CallFilter } from "../../store/usage-reports.ts";
import { invalidField } from "../operation/refusals.ts";
import { listScope } from "../operation/scope.ts";
import { readRange } from "../values/time-range.ts";

type FilterQuery = Partial<z.output<typeof callQuerySchema>>;

export interface ScopedFilter {
  readonly filter: CallFilter;
  /** True when another account's usage was requested, which is shown as empty. */
  readonly isEmpty: boolean;
}

/** The filter of a request, limited to what its sender may see. Throws 400 beyond that. */
export function usageFilter(query: FilterQuery, principal: Principal, now: number): ScopedFilter {
  const { accountId, isEmpty } = listScope(principal, query.account_id);
  const { environment, model, dialect, target, outcome, status, code } = query;
  if (target !== undefined) requireTargets("target", principal);
  const filter = {
    ...readRange(query, now),
    environment,
    accountId,
    model,
    dialect,
    target,
    outcome,
    status,
    code,
    applicationId: query.application_id,
    keyId: query.key_id,
    capacityClass: query.class,
    endUsers: query.end_user === undefined ? undefined : [query.end_user],
    tag: query.tag === undefined ? undefined : readTag(query.tag),
    mayBeBilledTwice: query.may_be_billed_twice === "true" ? (true as const) : undefined,
  };
  return { filter, isEmpty };
}

function readTag(text: string): readonly [string, string] {
  const end = text.indexOf("=");
  return [text.slice(0, end), text.slice(end + 1)];
}

const dimensions: ReadonlyMap<string, UsageDimension> = new Map(
  usageDimensions.map((dimension) => [dimension, dimension]),
);

/** The dimensions of `by`, each once. Throws 400 for an unknown or forbidden one. */
export function readDimensions(
  text: string | undefined,
  principal: Principal,
): readonly GroupDimension[] {
  if (text === undefined || text === "") return [];
  const found = text.split(",").map((name): GroupDimension => {
    const dimension = dimensions.get(name.trim());
    if (dimension !== undefined) return dimension;
    if (name.trim() === "end_user") return "end_user";
    const [, key] = /^tag:([A-Za-z0-9_.-]{1,64})$/.exec(name.trim()) ?? [];
    if (key !== undefined) return `tag:${key}`;
    const all = [...usageDimensions, "end_user", "tag:<key>"].join(", ");
    throw invalidField("by", `use any of ${all}, separated by commas`);
  });
  if (found.includes("target")) requireTargets("by", principal);
  return [...new Set(found)];
}

/** Targets contain the upstreams' own model identifiers, which only operators may see. */
function requireTargets(field: string, { accountId }: Principal): void {
  if (accountId === undefined) return;
  throw invalidField(field, "only operators see targets; single calls show the upstream");
}
