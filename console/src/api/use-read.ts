import { QueryClient, useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { read, readList } from "./client.ts";
import type { AccountView, KeyView, Listed } from "./contract.ts";
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

/** Puts the answer of a change where pages read, and asks again for lists that it may be in. */
export function useCache() {
  const client = useQueryClient();
  return useMemo(
    () => ({
      write<Path extends keyof Reads>(
        path: Path,
        parameters: Parameters,
        value: Reads[Path],
      ): void {
        client.setQueryData([path, parameters], value);
      },
      writeKey(view: KeyView): void {
        client.setQueryData(["/keys/{id}", { id: view.id }], view);
        void client.invalidateQueries({ queryKey: ["/keys"] });
      },
      writeAccount(view: AccountView): void {
        client.setQueryData(["/accounts/{id}", { id: view.id }], view);
        void client.invalidateQueries({ queryKey: ["/accounts"] });
      },
      refresh: (path: keyof Reads | keyof Lists): void => {
        void client.invalidateQueries({ queryKey: [path] });
      },
    }),
    [client],
  );
}
