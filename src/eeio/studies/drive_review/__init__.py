"""The review of a drive: ten figures and the charts of one campaign of eeio-drive-review."""

from eeio.studies import Study
from eeio.studies.drive_review.chapter import chapter

STUDY = Study(over_time=chapter)
