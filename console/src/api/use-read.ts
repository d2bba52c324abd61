import { useEffect, useRef } from "react";
import { QueryClient, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { read, readList } from "./client.ts";
import type { Choices, Listed } from "./contract.ts";
import type { Lists, Parameters, Reads } from "./endpoints.ts";
import { ApiFailure } from "./failure.ts";

const freshMs = 30_000;

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: freshMs,
      retry: (count, failure) => count < 1 && failure instanceof ApiFailure && failure.isPassing,
      // A changed filter keeps the old rows until the new ones are there.
      placeholderData: <Data>(previous: Data) => previous,
    },
  },
});

/** Begins the keys of what is no answer, and stays. */
export const kept = "kept";

/** After a change: what is shown is read again, and old answers are shown nowhere else. */
export function readAllAgain(): Promise<void> {
  queries.removeQueries({ type: "inactive", predicate: ({ queryKey: [name] }) => name !== kept });
  return queries.invalidateQueries();
}

/** The answer of a path; with `isOff` nothing is asked yet. */
export function useRead<Path extends keyof Reads>(
  path: Path,
  parameters: Parameters = {},
  { isOff = false }: { readonly isOff?: boolean } = {},
) {
  return useQuery<Reads[Path], ApiFailure>({
    queryKey: [path, parameters],
    enabled: !isOff,
    async queryFn({ signal }) {
      const answer = await read(path, parameters, signal);
      if (answer.ok) return answer.value;
      throw answer.failure;
    },
  });
}

/**
 * The rows of a list so far; `more` asks for the next page. One that is frozen is not asked again
 * when the window gets the focus, so that rows do not move under the pointer.
 */
export function useList<Path extends keyof Lists>(
  path: Path,
  parameters: Parameters = {},
  {
    isOff = false,
    isFrozen = false,
  }: { readonly isOff?: boolean; readonly isFrozen?: boolean } = {},
) {
  const query = useInfiniteQuery({
    queryKey: [path, parameters],
    enabled: !isOff,
    refetchOnWindowFocus: !isFrozen,
    initialPageParam: "",
    getNextPageParam: (last: Listed<Lists[Path]>) => last.next_cursor ?? undefined,
    async queryFn({ pageParam, signal }): Promise<Listed<Lists[Path]>> {
      const answer = await readList(path, { ...parameters, cursor: pageParam }, signal);
      if (answer.ok) return answer.value;
      throw answer.failure;
    },
  });
  const { error, refetch, dataUpdatedAt, hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const failure = error instanceof ApiFailure ? error : null;
  const data = query.data?.pages.flatMap((page) => [...page.data]);
  return {
    query: { data, error: failure, refetch, dataUpdatedAt },
    hasMore: hasNextPage,
    isLoadingMore: isFetchingNextPage,
    more: fetchNextPage,
  };
}

/**
 * Asks a path again when the live stream has told something else than before. `said`: what the answer
 * told of it.
 */
export function useRefresh(path: keyof Reads, told: string | undefined, said = told): void {
  const seen = useRef<string>(undefined);
  useEffect(() => {
    if (told === undefined) return;
    const before = seen.current ?? said;
    seen.current = told;
    if (before !== told) void queries.invalidateQueries({ queryKey: [path] });
  }, [path, told, said]);
}

/** What forms and filters offer, by the names of the lists; `scope` narrows them. */
export function useChoices<Name extends keyof Choices>(
  names: readonly Name[],
  scope: Parameters = {},
  { isOff = false }: { readonly isOff?: boolean } = {},
) {
  const query = useRead("/choices", { of: names.join(","), ...scope }, { isOff });
  // Lists that were not asked for are absent.
  const data: Pick<Choices, Name> | undefined = query.data;
  return { ...query, data };
}
