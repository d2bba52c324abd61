import { publishedSchema } from "./documents/published-schema.ts";
import { referenceEntries } from "./documents/config-reference.ts";
import { referenceText } from "./documents/reference-text.ts";

/** Writes `sluice.schema.json` and the reference of the documentation from the schema. */

const begin = "<!-- reference: begin -->";
const end = "<!-- reference: end -->";

export const schemaFile = new URL("../sluice.schema.json", import.meta.url);
export const documentationFile = new URL("../docs/configuration-reference.md", import.meta.url);

export function schemaText(): string {
  return `${JSON.stringify(publishedSchema(), null, 2)}\n`;
}

/** Replaces the reference in the documentation. */
export function withReference(documentation: string): string {
  const from = documentation.indexOf(begin);
  const to = documentation.indexOf(end);
  if (from < 0 || to < from) throw new Error("docs/configuration-reference.md has lost its marks");
  const reference = referenceText(referenceEntries());
  return `${documentation.slice(0, from)}${begin}\n\n${reference}\n${documentation.slice(to)}`;
}

if (import.meta.main) {
  await Bun.write(schemaFile, schemaText());
  await Bun.write(documentationFile, withReference(await Bun.file(documentationFile).text()));
}
