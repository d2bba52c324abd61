const commonWords = new Set(
  (
    "the and for are but not you your with this that from have has had was were will would can " +
    "could should shall may might must what when where which who whom why how about into onto " +
    "over under than then them they their there here its his her him she our out please tell " +
    "give make show want need like just some any all one two very more most much many also " +
    "does did doing done been being let say said know think explain describe write using use " +
    "me my is it in on at to of or as an be by do if we us so no yes i'm don't it's hello hi hey " +
    "today now answer question thanks thank find see look how short long few both each other such only same too"
  ).split(" "),
);

/** The distinct words of a text except common ones, in order and in lower case. */
export function topicWords(text: string, limit = 12): string[] {
  const found = new Set<string>();
  for (const [word] of text.slice(0, 8192).matchAll(/\p{L}[\p{L}\p{N}'-]{2,}/gu)) {
    const lowered = word.toLowerCase();
    if (!commonWords.has(lowered)) found.add(lowered);
    if (found.size === limit) break;
  }
  return [...found];
}

/** Words that look like names of people, places or things: capitals inside a sentence. */
export function properNames(text: string): string[] {
  const found = new Set<string>();
  const pattern =
    /(?<=[\p{L}\p{N},;:'")] ["'(]?)\p{Lu}[\p{L}\p{N}'-]+(?: \p{Lu}[\p{L}\p{N}'-]+)*/gu;
  for (const [name] of text.slice(0, 8192).matchAll(pattern)) {
    if (!commonWords.has(name.toLowerCase())) found.add(name);
  }
  return [...found];
}
