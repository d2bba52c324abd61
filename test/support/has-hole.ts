/** Whether a text is another one without a piece that is neither its beginning nor its end. */
export function hasHole(text: string, whole: string): boolean {
  if (text.length >= whole.length) return false;
  let same = 0;
  while (same < text.length && text[same] === whole[same]) same += 1;
  return same > 0 && same < text.length && whole.endsWith(text.slice(same));
}
