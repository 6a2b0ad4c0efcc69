// The data in the page: JSON, or JSON packed by gzip if it is long.

export const TOO_OLD =
  "This browser cannot unpack gzip (Chromium 80, Firefox 113, Safari 16.4 and newer can): " +
  "eeio report --format json has the same data.";

/** The body of a data element, by its id. Throws an Error with a message for the reader. */
export async function data(name) {
  const element = document.getElementById(name);
  if (element.type === "application/json") return JSON.parse(element.textContent);
  if (typeof DecompressionStream === "undefined") throw new Error(TOO_OLD);
  const packed = Uint8Array.from(atob(element.textContent.trim()), (c) => c.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(unpacked).text());
}
