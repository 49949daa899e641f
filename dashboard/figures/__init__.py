"""What each view answers: a picture, a sentence computed from the numbers, and the data of both."""
