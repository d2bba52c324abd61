import { readFileSync } from "node:fs";

/** By its path from the root of the project. */
export function readDocument(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
}

/** Rows of the Markdown tables of a document, as cells without code marks. */
export function tableRows(path: string): string[][] {
  return readDocument(path)
    .split("\n")
    .filter((line) => line.startsWith("|") && !/^\|\s*-/.test(line))
    .map((line) =>
      line
        .slice(1, line.lastIndexOf("|"))
        .split("|")
        .map((cell) => cell.trim().replaceAll("\\", "")),
    );
}

export const plain = (cell: string | undefined): string => (cell ?? "").replaceAll("`", "");

/** Of the headings of a page, as GitHub derives them. */
export function anchorsOf(markdown: string): readonly string[] {
  const headings = [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => heading);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, "")
      .replaceAll(" ", "-"),
  );
}
