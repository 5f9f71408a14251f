"""Takes charts out of an HTML report and puts them side by side into one SVG that follows light and dark.

python3 tools/picture.py loxia-demo.html docs/recall.svg 0 1      # the first two charts of the report
"""
import re
import sys

WIDTH, HEIGHT, GAP = 460, 300, 20

report, picture, *wanted = sys.argv[1:]
page = open(report, encoding="utf-8").read()
style = re.search(r"<style>\n(.*?)</style>", page, re.S).group(1)
# Colours and what is drawn; rules of the page around the charts stay there.
kept = [
    rule
    for rule in re.findall(r"(?:@media \(prefers-color-scheme: dark\) \{\s*:root \{.*?\}\s*\}|[^{}@]+\{[^{}]*\})", style, re.S)
    if re.match(r"\s*(:root|@media \(prefers|svg|\.(grid|diagonal|series|band|leader|accent|axis|mark|s[0-7]))", rule)
]
charts = re.findall(r"<svg viewBox=\"0 0 460 300\".*?</svg>", page, re.S)
captions = re.findall(r"<svg viewBox=\"0 0 460 300\" role=\"img\" aria-label=\"(.*?)\"", page)
parts = []
for place, index in enumerate(map(int, wanted)):
    left = place * (WIDTH + GAP)
    chart = charts[index].replace("<svg ", f'<svg x="{left}" y="22" width="{WIDTH}" height="{HEIGHT}" ', 1)
    parts.append(f'<text x="{left + WIDTH / 2:g}" y="14" text-anchor="middle">{captions[index]}</text>\n{chart}')
total = len(parts) * (WIDTH + GAP) - GAP
with open(picture, "w", encoding="utf-8") as out:
    out.write(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {HEIGHT + 22}" role="img">\n'
        f"<style>\n{''.join(kept).strip()}\n</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )
