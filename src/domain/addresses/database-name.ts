/** A database's URL for messages: without its password and options. */
export function nameOfDatabase(url: string): string {
  const { protocol, username, host, pathname } = new URL(url);
  return `${protocol}//${username === "" ? "" : `${username}@`}${host}${pathname}`;
}
