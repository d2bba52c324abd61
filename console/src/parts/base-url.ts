import { useRead } from "../api/use-read.ts";

/** Where callers of an environment reach the API. */
export function useBaseUrl(environment: string): string {
  const { data } = useRead("/environments");
  const found = data?.data.find(({ name }) => name === environment);
  const host = found?.hosts.find((name) => !name.includes("*"));
  // Without a host of its own, the environment answers at any address of the API.
  return host === undefined ? "https://YOUR-SLUICE/v1" : `https://${host}/v1`;
}
