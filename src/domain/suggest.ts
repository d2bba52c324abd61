/** The most similar candidate, if it is similar enough. */
export function suggest(written: string, candidates: Iterable<string>): string | undefined {
  if (written.length > 80) return undefined;
  const wanted = normalize(written);
  let best: string | undefined;
  // A name of one letter is similar to every other name of one letter.
  let bestDistance = Math.min(Math.max(2, Math.floor(wanted.length / 3) + 1), wanted.length);
  for (const candidate of candidates) {
    const distance = editDistance(wanted, normalize(candidate));
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Makes `bodyLimit`, `body-limit` and `body_limit` equal. */
function normalize(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
}

/** Number of insertions, deletions, replacements and swaps of neighbours between two texts. */
function editDistance(one: string, other: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let row = 1; row <= one.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= other.length; column += 1) {
      const isSame = one[row - 1] === other[column - 1];
      const isSwap =
        row > 1 &&
        column > 1 &&
        one[row - 1] === other[column - 2] &&
        one[row - 2] === other[column - 1];
      current.push(
        Math.min(
          cell(previous, column) + 1,
          cell(current, column - 1) + 1,
          cell(previous, column - 1) + (isSame ? 0 : 1),
          isSwap ? cell(beforePrevious, column - 2) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    beforePrevious = previous;
    previous = current;
  }
  return cell(previous, other.length);
}

function cell(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}
