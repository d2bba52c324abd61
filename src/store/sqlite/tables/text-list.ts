/** Reads a column that holds texts as a JSON array. */
export function readTexts(json: string): string[] {
  const list: unknown = JSON.parse(json);
  if (!Array.isArray(list)) throw new Error("the database holds a list that is none");
  return list.map(String);
}
