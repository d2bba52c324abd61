/** Limits of the documents' text (docs/style.md). */
const sentenceWords = 35;
const tableColumns = 120;

/** Sentences of a Markdown text that are longer than the limit; code and tables' rules left out. */
export function longSentences(markdown: string, most = sentenceWords): readonly string[] {
  return blocksOf(markdown)
    .flatMap((block) => block.split(/(?<=[.!?][)"*]{0,3})\s+/))
    .filter((sentence) => wordsIn(sentence) > most);
}

/** What a native engineer would write otherwise. */
const translated =
  /\b(?:allows? to|enables? to|in order to|so-called|thereby|whereby|thereof|therein|hereby|whilst|amongst|lest|ought to|shall|heeds?|(?:is|are) told|(?:is|are) to be|that what|such that|the both|informations|by means of|as of now|resp\.|in the frame of|depending of|different to|since (?:some|long) time|how it looks like)\b/gi;

export function translatedPhrases(markdown: string): readonly string[] {
  return blocksOf(markdown).flatMap((block) => block.match(translated) ?? []);
}

/** Lines of tables that are wider than the limit. */
export function wideTableLines(markdown: string): readonly string[] {
  return markdown
    .split("\n")
    .filter((line) => line.trimStart().startsWith("|") && line.length > tableColumns);
}

/** Paragraphs, items of lists and cells of tables, each as one line. */
function blocksOf(markdown: string): readonly string[] {
  const prose = markdown
    .replaceAll(/^ *```[\s\S]*?^ *```$/gm, "\n\n")
    .replaceAll(/<!--[\s\S]*?-->/g, "\n\n")
    .replaceAll(/^ *\|.*\|$/gm, (row) => row.replaceAll(/(?<!\\)\|/g, "\n\n"))
    .replaceAll(/^#+ .*$/gm, "\n\n")
    .replaceAll(/^ *(?:[-*]|\d+\.) /gm, "\n\n");
  return prose.split(/\n\s*\n/).map((block) => block.replaceAll(/\s+/g, " ").trim());
}

function wordsIn(sentence: string): number {
  return sentence.split(" ").filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}
