/** The state of a view is in the address: range, filters, environment, account. */
import { useCallback } from "react";
import { useLocation, useSearch } from "wouter";

/** Those that links within a section keep. */
const shared = ["environment", "account", "range"] as const;

export type UrlState<Name extends string> = Readonly<Record<Name, string>>;

/** The named parts of the address, and a function that changes some; an initial value is left out. */
export function useUrl<Name extends string>(
  initial: UrlState<Name>,
): readonly [UrlState<Name>, (change: Partial<UrlState<Name>>) => void] {
  const search = useSearch();
  const [path, navigate] = useLocation();
  const query = new URLSearchParams(search);
  const entries = Object.entries<string>(initial);
  // The names are those of `initial`.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const state = Object.fromEntries(
    entries.map(([name, value]) => [name, query.get(name) ?? value]),
  ) as UrlState<Name>;
  const change = (changed: Partial<UrlState<Name>>): void => {
    const next = new URLSearchParams(search);
    for (const [name, value] of Object.entries<string | undefined>(changed)) {
      const isInitial = entries.some(([known, first]) => known === name && first === value);
      if (value === undefined || value === "" || isInitial) next.delete(name);
      else next.set(name, value);
    }
    navigate(withQuery(path, next));
  };
  return [state, change];
}

/**
 * Makes addresses of other pages. Within a section, and between Usage and Calls, they keep
 * environment, account and range; elsewhere a view begins without filters.
 */
export function useHref(): (path: string, own?: Readonly<Record<string, string>>) => string {
  const search = useSearch();
  const [current] = useLocation();
  return useCallback(
    (path, own = {}) => {
      const query = new URLSearchParams(search);
      const next = new URLSearchParams(own);
      for (const name of sectionOf(path) === sectionOf(current) ? shared : []) {
        const value = query.get(name);
        if (value !== null && !next.has(name)) next.set(name, value);
      }
      return withQuery(path, next);
    },
    [search, current],
  );
}

function sectionOf(path: string): string {
  const [, first = ""] = path.split("/");
  return first === "calls" ? "usage" : first;
}

function withQuery(path: string, query: URLSearchParams): string {
  return query.size === 0 ? path : `${path}?${query.toString()}`;
}
