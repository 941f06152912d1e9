2
a good day2	a bad day2	good good2bad luck today