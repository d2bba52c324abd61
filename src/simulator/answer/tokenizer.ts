/**
 * The simulator's own tokens: up to five letters or three digits with the space before them, one
 * punctuation mark, or a run of white space. Joined, the tokens of a text are the text.
 */
const tokenPattern = / ?[\p{L}\p{M}]{1,5}| ?\p{N}{1,3}| ?[^\s\p{L}\p{M}\p{N}]|\s{1,8}/gu;

export function* tokenize(text: string): Generator<string, void, undefined> {
  for (const [token] of text.matchAll(tokenPattern)) yield token;
}

export function countTokens(text: string): number {
  return text.match(tokenPattern)?.length ?? 0;
}
