/**
 * The metrics of a gateway of one process, without the label `process` that each series has, so that a
 * test can look for a series by its own labels.
 */
export async function metricsOf(adminUrl: string): Promise<string> {
  const page = await (await fetch(`${adminUrl}/metrics`)).text();
  return withoutProcess(page);
}

export function withoutProcess(page: string): string {
  return page.replaceAll(/\{process="\d+"(?:,|(\}))/g, (_, end) => (end === undefined ? "{" : ""));
}
